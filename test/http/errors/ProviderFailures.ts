import { Effect } from "effect"
import { type Answer, type post, type Refusal, refusals } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert } from "../../harness/It.ts"
import { json, type Reply, text } from "../../harness/upstream/FakeUpstream.ts"
import { hidden, Upstreams } from "../../harness/upstream/Upstreams.ts"

/** An error as hosts write it, full of what must not reach a client. */
export const error = (over: object = {}) => ({
  error: { message: `hush ${hidden.firstKey}`, type: "hush_error", param: null, ...over }
})
const headers = { "x-request-id": "req-hush", "retry-after-hush": "1", server: "hush" }
export const failing = (status: number, over: object = {}): Reply => json(status, error(over), headers)

/** `alone` is what the client hears where there is no other route; `status` is told of the last route that failed. */
export type MovingFailure = readonly [what: string, reply: Reply, alone: Refusal, status: number | "network"]
export type FinalFailure = readonly [what: string, reply: Reply, refusal: Refusal]

/** Failures of the provider, whatever it was asked for: another route is asked. */
export const moving: ReadonlyArray<MovingFailure> = [
  ...[302, 404, 405, 408, 409, 425, 500, 502, 503, 504, 529].map(
    (status) => [`a ${status}`, failing(status), refusals.upstream, status] as const
  ),
  ["a 429", failing(429), refusals.allFailed("first", 429), 429],
  ...[401, 402, 403].map((status) => [`a ${status}`, failing(status), refusals.upstreamAuth, status] as const),
  ["a page with 500", text(500, "text/html", "<html>hush</html>"), refusals.upstream, 500],
  ["a page with 400", text(400, "text/html", "<html>hush</html>"), refusals.upstream, 400],
  ["a page with 200", text(200, "text/html", "<html>hush</html>"), refusals.upstream, 200],
  ["an empty body", text(200, "application/json", ""), refusals.upstream, 200],
  ["an empty 500", text(500, "application/json", ""), refusals.upstream, 500],
  ["half a body", text(200, "application/json", '{"choices":[{"mess'), refusals.upstream, 200],
  ["another protocol", json(200, { hush: true }), refusals.upstream, 200],
  ["an error in a 200", json(200, error()), refusals.upstream, 200],
  [
    "a broken connection",
    (response) => void response.socket?.destroy(),
    refusals.allFailed("first", "network"),
    "network"
  ]
]

/** Faults of the request: nobody else is asked. */
export const final: ReadonlyArray<FinalFailure> = [
  ["a 400", failing(400), refusals.rejected],
  ["a 413", failing(413), refusals.rejected],
  ["a 422", failing(422), refusals.rejected],
  ["moderation", failing(400, { code: "content_policy_violation" }), refusals.moderated],
  [
    "moderation with a 403",
    json(403, { code: "hush", error: "Content violates usage guidelines. hush" }),
    refusals.moderated
  ],
  ["moderation in a 200", json(200, error({ code: "content_policy_violation" })), refusals.moderated]
]

export const assertSecretive = ({ headers: sent, text: said }: Answer) => {
  const all = `${said}\n${[...sent].join("\n")}`
  for (const secret of ["hush", hidden.model, hidden.firstKey, hidden.secondKey]) assert.notInclude(all, secret)
}

type Customer = Effect.Effect.Success<ReturnType<typeof Served.customer>>

/** Sends a request of a new customer, or of the given one, with how often each provider was asked and what the customer paid. */
export const asking = (send: ReturnType<typeof post>) =>
  Effect.fnUntraced(function* (
    body: object,
    replies: { readonly first?: Reply; readonly second?: Reply } = {},
    known?: Customer
  ) {
    const { first, second } = yield* Upstreams
    const { spent, ...customer } = known ?? (yield* Served.customer())
    const before = [first.calls.length, second.calls.length] as const
    if (replies.first !== undefined) yield* first.script(replies.first)
    if (replies.second !== undefined) yield* second.script(replies.second)
    const answer = yield* send(customer, body)
    assertSecretive(answer)
    const asked = [first.calls.length - before[0], second.calls.length - before[1]]
    return { answer, asked, spent: yield* spent }
  })

export const assertChatServed = (answer: Answer, model: string) => {
  assert.strictEqual(answer.status, 200, answer.text)
  const [start] = answer.text.split("\n\n")
  const body: unknown = JSON.parse((start ?? "").replace(/^data: /, ""))
  assert.deepInclude(body, { model })
  assert.match(answer.text, /"id":"chatcmpl-[0-9a-f]{32}"/)
  assert.include(answer.text, "fine")
}
