import { Effect, Layer, Struct } from "effect"
import { Auth } from "../../../src/services/access/Auth.ts"
import { type AddressRange, BlockList, isTooWide, parseRange } from "../../../src/services/access/BlockList.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, it, withLayer } from "../../harness/It.ts"

const range = (text: string): AddressRange => {
  const parsed = parseRange(text)
  assert(parsed !== undefined, `${text} is a range`)
  return parsed
}

describe("An address range", () => {
  const canonical: ReadonlyArray<readonly [text: string, range: string]> = [
    ["203.0.113.9", "203.0.113.9/32"],
    ["192.168.1.7/24", "192.168.1.0/24"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["2001:DB8::5", "2001:db8::5/128"],
    ["2001:db8:0:0:1::/64", "2001:db8::/64"],
    ["::/0", "::/0"],
    ["::ffff:192.0.2.1", "192.0.2.1/32"],
    ["::ffff:192.0.2.77/120", "192.0.2.0/24"],
    [" 10.0.0.1 ", "10.0.0.1/32"]
  ]
  for (const text of ["0.0.0.0/0", "::/0", "8.0.0.0/7", "127.0.0.1", "127.8.0.0/16", "::1", "::/96", "2001::/15"]) {
    it(`${text} is not to be blocked by mistake`, () => assert.isTrue(isTooWide(range(text))))
  }
  for (const text of ["10.0.0.0/8", "126.0.0.0/8", "203.0.113.9", "::2", "2001::/16", "2001:db8::/32"]) {
    it(`${text} can be blocked like that`, () => assert.isFalse(isTooWide(range(text))))
  }
  for (const [text, expected] of canonical) {
    it(`${text} is ${expected}`, () => assert.strictEqual(parseRange(text), expected))
  }
  for (const text of [
    "",
    "x",
    "10.1",
    "010.0.0.1",
    "1.2.3.4/33",
    "::1/129",
    "1.2.3.4/",
    "1.2.3.4/1/2",
    "fe80::1%eth0",
    "1.2.3.4/-1",
    "example.com"
  ]) {
    it(`${JSON.stringify(text)} is none`, () => assert.isUndefined(parseRange(text)))
  }
})

const services = Layer.merge(BlockList.layer, Auth.layer).pipe(Layer.provideMerge(Postgres.layer))

withLayer(services)("BlockList", (it) => {
  it.effect("ranges come and go, each once", function* () {
    const blockList = yield* BlockList
    const added = yield* Effect.forEach(["2001:db8::1/32", "192.168.1.7/24", "10.0.0.1"], (text) =>
      blockList.add(range(text))
    )
    assert.deepStrictEqual(added.map(Struct.get("cidr")), ["2001:db8::/32", "192.168.1.0/24", "10.0.0.1/32"])
    const [, second] = added
    assert.deepStrictEqual(yield* blockList.add(range("192.168.1.200/24")), second)
    const listed = (yield* blockList.list).map((row) => row.cidr)
    assert.deepStrictEqual(listed, ["10.0.0.1/32", "192.168.1.0/24", "2001:db8::/32"])
    assert.strictEqual((yield* blockList.remove(range("192.168.1.0/24"))).cidr, "192.168.1.0/24")
    const error = yield* Effect.flip(blockList.remove(range("192.168.1.0/24")))
    assert.strictEqual(error.message, "192.168.1.0/24 is not on the block list.")
    assert.lengthOf(yield* blockList.list, 2)
  })

  it.effect("what is listed is what a gateway refuses, from both families and mapped", function* () {
    const blockList = yield* BlockList
    const auth = yield* Auth
    yield* blockList.add(range("198.51.100.0/25"))
    yield* blockList.add(range("2001:db8:aa::/48"))
    yield* Effect.sleep("1 second")
    for (const address of ["198.51.100.1", "::ffff:198.51.100.127", "2001:db8:aa:ffff::1"]) {
      assert.isTrue(yield* auth.isBlocked(address), address)
    }
    for (const address of ["198.51.100.128", "::ffff:198.51.100.200", "2001:db9::1"]) {
      assert.isFalse(yield* auth.isBlocked(address), address)
    }
  })
})
