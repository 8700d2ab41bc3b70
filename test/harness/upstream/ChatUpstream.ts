/** `FakeUpstream` is a scripted chat provider that the tests of a file share. Also contains its answers. */

import { Context, Layer } from "effect"
import { price } from "../fixtures/ChatCatalog.ts"
import * as Upstream from "./FakeUpstream.ts"

/** A scripted provider of chats, shared by the tests of a file. */
export class FakeUpstream extends Context.Tag("test/FakeUpstream")<FakeUpstream, Upstream.FakeUpstream>() {}

export const layer = Layer.scoped(FakeUpstream, Upstream.make)

const usage = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 }
/** The price of the answers below, in nano-USD. */
export const cost = 12n * price.prompt + 7n * price.completion

const choice = (content: string) => ({ index: 0, message: { role: "assistant", content }, finish_reason: "stop" })

/** A complete chat answer. */
export const answer = (content: string): Upstream.Reply =>
  Upstream.json(200, { id: "theirs", object: "chat.completion", model: "theirs", choices: [choice(content)], usage })

const chunk = (rest: object) => Upstream.event({ id: "theirs", object: "chat.completion.chunk", ...rest })

/** Returns one event of a stream with this text. */
export const delta = (content: string): string => chunk({ choices: [{ index: 0, delta: { content } }] })

/** The last events of a complete stream. */
export const end: string =
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) + chunk({ choices: [], usage }) + Upstream.done
