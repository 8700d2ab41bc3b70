/** `FakeUpstream`: a scripted provider of chats that the tests of a file share, and its answers. */

import { Context, Layer } from "effect"
import { price } from "../fixtures/ChatCatalog.ts"
import * as Upstream from "./FakeUpstream.ts"

/** A scripted provider of chats, shared by the tests of a file. */
export class FakeUpstream extends Context.Tag("test/FakeUpstream")<FakeUpstream, Upstream.FakeUpstream>() {}

export const layer = Layer.scoped(FakeUpstream, Upstream.make)

const usage = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 }
/** What the answers below cost, in nano-USD. */
export const cost = 12n * price.prompt + 7n * price.completion

const choice = (content: string) => ({ index: 0, message: { role: "assistant", content }, finish_reason: "stop" })

/** A whole chat answer. */
export const answer = (content: string): Upstream.Reply =>
  Upstream.json(200, { id: "theirs", object: "chat.completion", model: "theirs", choices: [choice(content)], usage })

const chunk = (rest: object) => Upstream.event({ id: "theirs", object: "chat.completion.chunk", ...rest })

/** One event of a stream with some text in it. */
export const delta = (content: string): string => chunk({ choices: [{ index: 0, delta: { content } }] })

/** The last events of a whole stream. */
export const end: string =
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) + chunk({ choices: [], usage }) + Upstream.done
