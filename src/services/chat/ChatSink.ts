import type { Effect } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { Aborted, RoutingFailure, SettleFailed } from "../../domain/Failure.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { StreamClient } from "../routing/RoutedStream.ts"
import type { ClientDeparture } from "../runtime/ClientDeparture.ts"

/** Never fails: a client that left shows in `departure`. */
export interface ChatSink extends StreamClient {
  /** Sends the head once, then keep-alives while nothing is written. */
  readonly open: Effect.Effect<void>
  /** From then on an error can only be a chunk. */
  readonly isOpen: Effect.Effect<boolean>
  /** Writes at once; the effect waits until the client can take more. */
  readonly write: (events: ReadonlyArray<ChatEvent>) => Effect.Effect<void>
  readonly finish: (usage: Usage, charge: NanoUsd) => Effect.Effect<void>
  readonly fail: (failure: RoutingFailure | SettleFailed | Aborted) => Effect.Effect<void>
  readonly departure: ClientDeparture
}
