import { fileURLToPath } from "node:url"
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer, Redacted } from "effect"
import { Database } from "../../src/database/Database.ts"
import { proxyTo } from "../harness/database/DatabaseProxy.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { ownServer } from "./OwnServer.ts"

const fixture = (name: string) => fileURLToPath(new URL(`../fetching/fixtures/${name}`, import.meta.url))

/** Is for 127.0.0.1, and signed by itself. */
const certificate = fixture("cert.pem")

const isEncrypted = (url: string) =>
  Layer.build(Database.layerUrl(Redacted.make(url), { maxConnections: 1 })).pipe(
    Effect.flatMap(
      (context) => Context.get(context, SqlClient)`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`
    ),
    Effect.map(([row]) => row?.["ssl"]),
    Effect.catchTag("DatabaseUnavailable", ({ message }) => Effect.succeed(message)),
    Effect.scoped
  )

/** What the system trusts, for the process of the tests. */
const trusting = (file: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = process.env["SSL_CERT_FILE"]
      process.env["SSL_CERT_FILE"] = file
      return before
    }),
    (before) =>
      Effect.sync(() => {
        if (before === undefined) delete process.env["SSL_CERT_FILE"]
        else process.env["SSL_CERT_FILE"] = before
      })
  )

describe("TLS to the database", () => {
  it.scopedLive("is as the URL says", function* () {
    const { address, run, useTls } = yield* ownServer
    yield* run("CREATE ROLE app LOGIN PASSWORD 'one'", "CREATE DATABASE app OWNER app")
    yield* useTls(certificate, fixture("key.pem"))
    const { url } = yield* proxyTo(`postgres://app:one@${address}:5432/app`)
    const outcomes = (...parameters: ReadonlyArray<string>) =>
      Effect.forEach(parameters, (parameter) => isEncrypted(`${url}?${parameter}`))

    const plain = ["", "ssl=false", "ssl=0", "ssl=off", "sslmode=disable"]
    assert.deepStrictEqual(
      yield* outcomes(...plain),
      plain.map(() => false)
    )
    assert.deepStrictEqual(yield* outcomes("ssl=no-verify", `sslrootcert=${certificate}`), [true, true])
    const warnings: Array<string> = []
    const onWarning = ({ message }: Error) => warnings.push(message)
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("warning", onWarning)),
      () => Effect.sync(() => process.off("warning", onWarning))
    )
    for (const parameter of ["ssl=true", "ssl=on", "sslmode=verify-full", "sslmode=require", "sslmode=prefer"]) {
      assert.include(yield* isEncrypted(`${url}?${parameter}`), "self-signed certificate")
    }
    assert.deepStrictEqual(warnings, [])
    assert.deepStrictEqual(yield* outcomes("sslmode=require&uselibpqcompat=true"), [true])
    assert.include(yield* isEncrypted(`${url}?sslrootcert=system`), "self-signed certificate")
    yield* trusting(certificate)
    assert.deepStrictEqual(yield* outcomes("sslrootcert=system", "sslmode=verify-full&sslrootcert=system"), [
      true,
      true
    ])
  })

  it.scopedLive("is off with ssl=false for a server that has none", function* () {
    const { url } = yield* proxyTo(yield* Postgres.freshUrl)
    assert.strictEqual(yield* isEncrypted(`${url}?ssl=false`), false)
    assert.include(yield* isEncrypted(`${url}?ssl=true`), "does not support SSL")
  })
})
