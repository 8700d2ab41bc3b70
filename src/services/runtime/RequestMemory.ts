import { Effect } from "effect"
import type { GatewayBusy } from "../../domain/Failure.ts"

/** Waits for so many bytes beside the request's body; they are freed when the request ends. */
export type ReserveMemory = (bytes: number) => Effect.Effect<void, GatewayBusy>

export const unlimitedMemory: ReserveMemory = () => Effect.void
