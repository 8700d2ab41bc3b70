import { chatAdapterContract } from "../contracts/ChatAdapter.ts"
import { harnesses } from "../contracts/ChatHosts.ts"
import { assert, it } from "../harness/It.ts"
import { chatWires } from "./ChatWires.ts"
import { registered } from "./Registered.ts"

chatWires.flatMap(harnesses).forEach(chatAdapterContract)

it.effect("every adapter of chats that speaks with a host is held to the contract", function* () {
  const held = new Set(["sandbox", ...chatWires.map(({ adapter }) => adapter)])
  const chats = [...(yield* registered)].filter(([, { surfaces }]) => surfaces.has("chat"))
  assert.deepStrictEqual(
    chats.map(([name]) => name).filter((name) => !held.has(name)),
    [],
    "missing in test/providers/ChatWires.ts"
  )
})
