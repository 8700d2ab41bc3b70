import { root } from "../../docs/Markdown.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gateway } from "../SandboxChat.ts"
import { block, customerOf, exportsOf, programOf, type Ran, requestsOf, run, workspace } from "./Agents.ts"

const [opencode, qwen, cline, cn] = [programOf("opencode"), programOf("qwen"), programOf("cline"), programOf("cn")]

/** Cline takes twenty seconds to leave. */
const patience = 180_000

const word = "The word is heron."
const assertRead = ({ stderr, stdout }: Ran) => assert.include(stdout, word, stderr)

withLayer(gateway)("the page for agents", (it) => {
  it.scoped.skipIf(opencode === undefined)(
    "configures opencode",
    function* () {
      const account = yield* customerOf()
      const cwd = yield* workspace({ "opencode.json": block("opencode", "json", account), "notes.txt": word })
      for (const model of ["claude-opus-5", "gpt-5.5"]) {
        const args = ["run", "--format", "json", "--model", `gateway/${model}`, "read the file notes.txt"]
        assertRead(yield* run(opencode ?? "", args, cwd, { GATEWAY_KEY: account.secret }))
      }
      assert.isTrue((yield* requestsOf(account.org, 4)).every(({ status }) => status === 200))
    },
    patience
  )

  it.scoped.skipIf(qwen === undefined)(
    "configures qwen-code",
    function* () {
      const account = yield* customerOf()
      const cwd = yield* workspace({ "notes.txt": word })
      // It passes a proxy what NO_PROXY names.
      const env = { ...exportsOf(block("qwen-code", "sh", account)), HTTP_PROXY: "", HTTPS_PROXY: "" }
      assertRead(yield* run(qwen ?? "", ["-y", `read the file ${cwd}/notes.txt`], cwd, env))
      assert.isAbove(Number(yield* account.spentInTheEnd), 0)
    },
    patience
  )

  it.scoped.skipIf(cline === undefined)(
    "configures Cline",
    function* () {
      const account = yield* customerOf()
      const cwd = yield* workspace({ "notes.txt": word })
      const [, authentication = ""] = /^cline (.*)$/m.exec(block("Cline", "sh", account)) ?? []
      const { stderr } = yield* run(cline ?? "", authentication.split(" "), cwd, {})
      assertRead(yield* run(cline ?? "", ["--json", "read the file notes.txt"], cwd, {}))
      assert.isAbove(Number(yield* account.spentInTheEnd), 0, stderr)
    },
    patience
  )

  it.scoped.skipIf(cn === undefined)(
    "configures Continue, each model",
    function* () {
      const account = yield* customerOf()
      const [head = "", ...models] = block("Continue", "yaml", account).split(/^(?= {2}- )/m)
      assert.lengthOf(models, 2)
      const files = models.map((model, at) => [`${at}.yaml`, head + model] as const)
      const cwd = yield* workspace({ ...Object.fromEntries(files), "notes.txt": word })
      for (const [file] of files) {
        assertRead(yield* run(cn ?? "", ["-p", "--auto", "--config", file, "read the file notes.txt"], cwd, {}))
      }
      assert.lengthOf(yield* requestsOf(account.org, 4), 4)
    },
    patience
  )

  for (const section of ["AI SDK", "LangChain"]) {
    it.scoped(`configures the ${section}`, function* () {
      const account = yield* customerOf()
      const args = ["--input-type=module", "--eval", block(section, "js", account)]
      const { code, stderr, stdout } = yield* run(process.execPath, args, root, { GATEWAY_KEY: account.secret })
      assert.strictEqual(code, 0, stderr)
      assert.lengthOf(stdout.match(/Say hello in one sentence\.".* \d+$/gm) ?? [], 3, stdout)
      const answers = section === "AI SDK" ? 4 : 3
      if (answers === 4) assert.match(stdout, /^\{ city: /m)
      assert.lengthOf(yield* requestsOf(account.org, answers), answers)
    })
  }
})
