import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { ChatModel } from "../../../src/domain/Model.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { conversationKeyOf } from "../../../src/http/chat/ChatTasks.ts"
import { model, request, route } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"

const two = model(route("a"), route("b"))

interface Asked {
  readonly of?: ChatModel
  readonly org?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly bytes?: number
}

const keyOf = (more: Partial<ChatRequest>, { bytes = 10_000, headers = {}, of = two, org = "org_1" }: Asked = {}) =>
  conversationKeyOf(of, request(more), { bytes, headers, org: OrgId.make(org) })

const talk = (system: string, user: string, ...later: ReadonlyArray<string>): Partial<ChatRequest> => ({
  messages: [
    { role: "system", content: system },
    { role: "user", content: [{ type: "text", text: user }] },
    ...later.map((content) => ({ role: "user" as const, content }))
  ]
})

const saysUser = (user_id: unknown): Partial<ChatRequest> => ({
  native: { dialect: "messages", body: { metadata: { user_id } }, headers: {}, extraTokens: 0 }
})

describe("the conversation of a request", () => {
  it("is the same for every turn of one beginning", () => {
    const first = keyOf(talk("be brief", "hello"))
    assert.isString(first)
    assert.strictEqual(keyOf(talk("be brief", "hello", "and then?")), first)
    assert.notStrictEqual(keyOf(talk("be brief", "good day")), first)
    assert.notStrictEqual(keyOf(talk("be long", "hello")), first)
  })

  it("is that of one organization and one model", () => {
    const first = keyOf(talk("be brief", "hello"))
    assert.notStrictEqual(keyOf(talk("be brief", "hello"), { org: "org_2" }), first)
    assert.notStrictEqual(keyOf(talk("be brief", "hello"), { of: { ...two, id: "n" } }), first)
  })

  it("is of the first 4,096 characters of each text", () => {
    const long = "x".repeat(4_096)
    assert.strictEqual(keyOf(talk(`${long}1`, `${long}1`)), keyOf(talk(`${long}2`, `${long}2`)))
    assert.notStrictEqual(keyOf(talk(`1${long}`, long)), keyOf(talk(`2${long}`, long)))
  })

  it("is none where the prompt is too short for any cache, unless the client names it", () => {
    assert.isUndefined(keyOf(talk("be brief", "hello"), { bytes: 4_095 }))
    assert.isString(keyOf(talk("be brief", "hello"), { bytes: 4_096 }))
    assert.isString(keyOf({ promptCacheKey: "k" }, { bytes: 100 }))
    assert.isString(keyOf({}, { bytes: 100, headers: { "session-id": "s" } }))
  })

  it("is none where the model has a single route", () => {
    assert.isUndefined(keyOf({ promptCacheKey: "k" }, { of: model(route("a")) }))
  })

  for (const name of ["session-id", "session_id", "x-claude-code-session-id", "x-session-affinity"]) {
    it(`is named by the header ${name}, whatever the conversation begins with`, () => {
      const key = keyOf(talk("a", "b"), { headers: { [name]: "s" } })
      assert.strictEqual(keyOf(talk("c", "d"), { headers: { [name]: "s" } }), key)
      assert.notStrictEqual(keyOf(talk("a", "b"), { headers: { [name]: "t" } }), key)
      assert.strictEqual(keyOf(talk("a", "b"), { headers: { [name]: "" } }), keyOf(talk("a", "b")))
    })
  }

  it("is named by the body's key before a header", () => {
    const headers = { "session-id": "s" }
    assert.strictEqual(keyOf({ promptCacheKey: "k" }, { headers }), keyOf({ promptCacheKey: "k" }))
    assert.strictEqual(keyOf({ promptCacheKey: "" }, { headers }), keyOf({}, { headers }))
  })

  it("is named by the session in Claude Code's user id, not by a user", () => {
    const id = "6f1c2b1e-8a35-4a0e-9a53-0d5c1f2b3a4d"
    const key = keyOf(saysUser(JSON.stringify({ device_id: "d", account_uuid: "", session_id: id })))
    assert.strictEqual(keyOf({ ...talk("a", "b"), ...saysUser(`user_0a1b_account__session_${id}`) }), key)
    assert.notStrictEqual(key, keyOf({}))
    for (const user of ["somebody", "user_0a1b", 7, null, "x".repeat(100_000)]) {
      assert.strictEqual(keyOf(saysUser(user)), keyOf({}))
    }
  })
})
