import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { toUsdText } from "../domain/Money.ts"
import { entryRecord } from "../services/admin/EntryRecord.ts"
import { LedgerAdmin, type NothingToRefund } from "../services/ledger/LedgerAdmin.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, findAnyOrganization, findOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"
import { findRequests, requestArgument } from "./requests/Show.ts"

const filled = (name: string) => Inputs.option(name, "a text that is not blank", Inputs.nonBlank)

const add = command(
  "add",
  "Enter a payment.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", Inputs.usd.positive, Inputs.positiveUsd),
    ref: Inputs.optional(filled("ref"), "the payment's own reference; the same one is never added twice"),
    note: Inputs.optional(filled("note"), "why, for the ledger")
  },
  Effect.fnUntraced(
    function* ({ org, ...payment }) {
      const { id } = yield* findOrganization(org)
      const { topUp } = yield* LedgerAdmin
      const { entry, replayed } = yield* topUp({ org: id, ...payment })
      const remark = replayed ? "This payment was added before; nothing was added now." : ""
      return Output.record({ ...entryRecord(entry), replayed }, remark)
    },
    Effect.catchTag("RefTaken", ({ ref }) => {
      const message = `The reference ${ref} belongs to another payment: another organization or amount.`
      return new CommandFailed({ message })
    })
  )
)

const adjust = command(
  "adjust",
  "Correct a balance, up or down.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", Inputs.usd.nonZero, Inputs.nonZeroUsd),
    note: filled("note").pipe(Options.withDescription("why, for the ledger")),
    force: Options.boolean("force").pipe(Options.withDescription("even if less than nothing is left available"))
  },
  Effect.fnUntraced(
    function* ({ org, ...correction }) {
      const { id } = yield* findOrganization(org)
      const { adjust } = yield* LedgerAdmin
      return Output.record(entryRecord(yield* adjust({ org: id, ...correction })))
    },
    Effect.catchTag("WouldOverdraw", ({ available }) => {
      const message = `Only ${toUsdText(available)} USD are available; --force goes below zero all the same.`
      return new CommandFailed({ message })
    })
  )
)

const chargedRequest = Effect.fnUntraced(function* (id: string) {
  const ledger = yield* LedgerAdmin
  const rows = yield* findRequests(id)
  const found = yield* Effect.forEach(rows, ({ holdId, id: row, orgId: org }) =>
    Effect.map(holdId === null ? Effect.succeed(undefined) : ledger.hold(holdId), (money) => ({ row, org, money }))
  )
  const charged = found.flatMap(({ money, org, row }) =>
    money === undefined || (money.hold.charged ?? 0n) === 0n ? [] : [{ row, org, hold: money.hold.id }]
  )
  const [one, ...others] = charged
  if (one === undefined) return yield* new CommandFailed({ message: `The request ${id} was charged nothing.` })
  if (others.length === 0) return one
  const rowIds = charged.map(({ row }) => row).join(", ")
  return yield* new CommandFailed({ message: `${charged.length} requests have the id ${id}; name one of ${rowIds}.` })
})

const requireLiving = Effect.fnUntraced(function* (org: string) {
  const { deletedAt } = yield* findAnyOrganization(org)
  if (deletedAt === null) return
  const message = `The request is of the organization ${org}, which was deleted: no balance can take a refund.`
  return yield* new CommandFailed({ message })
})

const explainRefusal = (id: string, { charged, remaining }: NothingToRefund) => {
  const whole = `${toUsdText(charged)} USD that the request ${id} was charged`
  const message =
    remaining > 0n
      ? `Only ${toUsdText(remaining)} of the ${whole} are left to refund.`
      : `All ${whole} were refunded before.`
  return new CommandFailed({ message })
}

const refund = command(
  "refund",
  "Give back what a request was charged, to the balance and to its key's cap.",
  {
    id: requestArgument,
    amount: Inputs.optional(
      Inputs.option("amount", Inputs.usd.positive, Inputs.positiveUsd),
      "USD; default: all that was not given back before"
    ),
    note: filled("note").pipe(Options.withDescription("why, for the ledger"))
  },
  Effect.fnUntraced(function* ({ amount, id, note }) {
    const { org, ...request } = yield* chargedRequest(id)
    yield* requireLiving(org)
    const { refund } = yield* LedgerAdmin
    const entry = yield* Effect.catchTag(refund({ ...request, amount, note }), "NothingToRefund", (refusal) =>
      explainRefusal(id, refusal)
    )
    return Output.record({ ...entryRecord(entry), request: request.row })
  })
)

export const credits = Inputs.group("credits", "Money in, and corrections.").pipe(
  Command.withSubcommands([add, adjust, refund])
)
