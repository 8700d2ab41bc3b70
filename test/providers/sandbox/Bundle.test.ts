import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { cp, rm } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, it } from "../../harness/It.ts"
import { bundleOf, temporaryDirectory } from "../../harness/temporary.ts"
import { draw } from "./SandboxMedia.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const run = promisify(execFile)

const chunksOf = (program: string) => program.replace(/\.js$/, "")

const bundled = Effect.acquireRelease(
  Effect.promise(async () => {
    const program = bundleOf("SandboxProgram")
    await run(process.execPath, ["build.mjs", "test/providers/sandbox/SandboxProgram.ts", program], { cwd: root })
    return program
  }),
  (program) =>
    Effect.promise(() =>
      Promise.all([program, chunksOf(program)].map((made) => rm(made, { recursive: true, force: true })))
    )
)

const print = (program: string) =>
  Effect.map(
    Effect.promise(() => run(process.execPath, [program], { cwd: "/" })),
    ({ stderr, stdout }) => ({ lines: stdout.trim().split("\n"), stderr })
  )

it.scoped(
  "a bundle draws the same pictures without native add-ons; without its decoder it fails edits alone",
  function* () {
    const program = yield* bundled
    const references = [[], [{ type: "image/png", bytes: png } as const]]
    const [picture, edit] = yield* Effect.forEach(references, (references) =>
      Effect.map(draw({ references }), ({ bytes }) => createHash("sha256").update(bytes).digest("hex"))
    )
    assert.deepStrictEqual(yield* print(program), { lines: [picture, edit, "0"], stderr: "" })

    const directory = yield* temporaryDirectory
    const copy = path.join(directory, path.basename(program))
    yield* Effect.promise(async () => {
      await cp(program, copy)
      await cp(chunksOf(program), chunksOf(copy), { recursive: true })
    })
    const { lines } = yield* print(copy)
    assert.strictEqual(lines[0], picture, "a picture without references needs no package")
    assert.match(lines[1] ?? "", /^retry: sandbox: references cannot be decoded: Error: Cannot find module/)
  }
)
