import type { Command } from "./LedgerModel.ts"

/** Shrunk sequences that once broke the ledger, its model, or a ledger with a bug planted in it. */
export const cases: ReadonlyArray<ReadonlyArray<Command>> = [
  // A release that met a settle of the same hold gave the charge back.
  [
    { do: "hold", by: 0, key: 1, amount: 0 },
    { do: "hold", by: 1, key: 0, amount: 6 },
    { do: "settle", by: 0, hold: 2, cost: 6 },
    { do: "race", hold: 7, costs: [46, 5] },
    { do: "settle", by: 0, hold: 6, cost: 17 }
  ],
  // Settles of a hold that the sweep of a crash was about to release: either may win.
  [
    { do: "hold", by: 0, key: 0, amount: 0, canReduceHold: false },
    { do: "crash", by: 0 },
    { do: "step", seconds: 60 },
    { do: "race", hold: 0, costs: [0, 0] }
  ]
]
