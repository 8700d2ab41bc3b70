import { assert, describe, it } from "@effect/vitest"
import { faultsFor } from "../../src/providers/sandbox/Faults.ts"
import { route } from "../harness/gateway/Sandbox.ts"

describe("a switch in a long text", () => {
  const piece = 64 * 1024

  it("is found wherever it stands, and found once", () => {
    for (const name of ["[sandbox status=503]", `[sandbox ${"x ".repeat(90)}status=503]`]) {
      for (let at = piece - name.length - 1; at <= piece + 1; at++) {
        const text = `${"y".repeat(at)}${name}${"[".repeat(piece)}`
        assert.deepStrictEqual(faultsFor(route(), [text]), { status: 503 })
      }
    }
  })

  it("that never closes is none", () => {
    assert.deepStrictEqual(faultsFor(route(), ["[sandbox ".repeat(100_000), "[".repeat(1_000_000)]), {})
  })
})
