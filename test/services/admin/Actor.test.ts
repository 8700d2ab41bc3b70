import { hostname } from "node:os"
import { commandLineName } from "../../../src/services/admin/Actor.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("the name of who ran a command", () => {
  const host = hostname()
  const root = () => ({ username: "root" })

  it("is the one that is given, on one line", () => {
    assert.strictEqual(commandLineName("Ada L.", { SUDO_USER: "bob" }, root), "cli:Ada L.")
    assert.strictEqual(commandLineName("ada\n\u0000x", {}, root), "cli:ada x")
    assert.lengthOf(commandLineName("a".repeat(500), {}, root), 104)
  })

  it("is else the account, or the one that called sudo, with the address that SSH came from", () => {
    const SSH_CONNECTION = "203.0.113.9 50022 10.0.0.11 22"
    assert.strictEqual(commandLineName(undefined, {}, root), `cli:root@${host}`)
    assert.strictEqual(commandLineName(undefined, { SUDO_USER: "ada" }, root), `cli:ada@${host}`)
    assert.strictEqual(commandLineName(undefined, { SSH_CONNECTION }, root), `cli:root@${host} from 203.0.113.9`)
    assert.strictEqual(commandLineName(undefined, { SSH_CONNECTION: "", SUDO_USER: "" }, root), `cli:root@${host}`)
  })

  it("is the user's number where the machine has no name for it", () => {
    const nameless = () => {
      throw new Error("uv_os_get_passwd returned ENOENT")
    }
    assert.match(commandLineName(undefined, {}, nameless), /^cli:uid \d+@/)
  })
})
