import type { Refusal } from "../../harness/client/HttpCalls.ts"
import type { Customer } from "../../harness/client/MessagesClient.ts"
import type { Answer, Turn, Understood } from "../ChatHarness.ts"

/** What a client asks for, in the words of no dialect. */
export interface Asked extends Partial<Pick<Understood, "system" | "maxTokens" | "stop" | "tools" | "toolChoice">> {
  readonly model: string
  readonly schema?: Readonly<Record<string, unknown>>
  /** Whether the client wants to see the reasoning. */
  readonly reasons?: boolean
}

/** Hands back every answer as the client received it. */
export interface Conversation {
  readonly say: (...turns: ReadonlyArray<Turn>) => Promise<Answer>
}

/** How a stream ended that broke on its way. */
export interface Ending {
  readonly text: string
  readonly type: string
  readonly message: string
}

/** The words of a host that refuses a request. */
export interface Reason {
  readonly message: string
  readonly code: string | undefined
}

/** A dialect of clients, spoken by its official client. */
export interface Inbound {
  readonly name: string
  /** The adapter whose hosts get the client's own body. */
  readonly native: string | undefined
  readonly hasStop: boolean
  readonly open: (customer: Customer, asked: Asked, stream: boolean) => Conversation
  readonly breakOff: (customer: Customer, asked: Asked) => Promise<Ending>
  /** The type of the error at the end of a broken stream. */
  readonly brokenType: string
  readonly assertRefused: (thrown: unknown, refusal: Refusal, reason?: Reason) => void
}
