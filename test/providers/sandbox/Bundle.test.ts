import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { rm } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { assert, it } from "../../harness/It.ts"
import { bundleOf } from "../../harness/temporary.ts"
import { draw } from "./SandboxMedia.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const run = promisify(execFile)

const bundled = Effect.acquireRelease(
  Effect.promise(async () => {
    const program = bundleOf("SandboxProgram")
    await run(process.execPath, ["build.mjs", "test/providers/sandbox/SandboxProgram.ts", program], { cwd: root })
    return program
  }),
  (program) =>
    Effect.promise(() =>
      Promise.all([program, program.replace(/\.js$/, "")].map((made) => rm(made, { recursive: true, force: true })))
    )
)

it.scoped(
  "a bundle draws the same, silently, whatever fonts the machine has, and loads what it needs for that late",
  function* () {
    const program = yield* bundled
    const nowhere = path.join(root, "nowhere")
    const env = { ...process.env, FONTCONFIG_FILE: nowhere, FONTCONFIG_PATH: nowhere, HOME: nowhere }
    const { stderr, stdout } = yield* Effect.promise(() => run(process.execPath, [program], { cwd: "/", env }))
    const { bytes } = yield* draw({})
    const hash = createHash("sha256").update(bytes).digest("hex")
    assert.deepStrictEqual(stdout.trim().split("\n"), ["false", hash, "true"])
    assert.strictEqual(stderr, "")
  }
)
