import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { rm } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { png } from "../../harness/fixtures/TinyMedia.ts"
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

it.scoped("a bundle draws the same pictures, silently and without native add-ons", function* () {
  const program = yield* bundled
  const { stderr, stdout } = yield* Effect.promise(() => run(process.execPath, [program], { cwd: "/" }))
  const references = [[], [{ type: "image/png", bytes: png } as const]]
  const hashes = yield* Effect.forEach(references, (references) =>
    Effect.map(draw({ references }), ({ bytes }) => createHash("sha256").update(bytes).digest("hex"))
  )
  assert.deepStrictEqual(stdout.trim().split("\n"), [...hashes, "0"])
  assert.strictEqual(stderr, "")
})
