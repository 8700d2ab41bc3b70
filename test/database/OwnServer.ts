/** `ownServer`: a PostgreSQL server for one test, whose roles log in with passwords. */

import { chmodSync, chownSync, copyFileSync, lstatSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Context, Effect, Layer } from "effect"
import * as Pg from "pg"
import { Embedded } from "../../src/database/Embedded.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const access = `
local all postgres trust
local all all scram-sha-256
host all all 127.0.0.0/8 scram-sha-256
`

/** An address of one's own on the loopback interface, since the port is always 5432. */
const ownAddress = () =>
  `127.${90 + Math.floor(Math.random() * 100)}.${process.pid % 250}.${2 + Math.floor(Math.random() * 250)}`

export interface OwnServer {
  /** Where its socket is. */
  readonly socket: string
  /** Listens on TCP. */
  readonly address: string
  readonly run: (...statements: ReadonlyArray<string>) => Effect.Effect<void>
  /** The URL of a role and its database over the socket, with a superuser that needs no password. */
  readonly url: (role: string, password: string, database?: string) => string
  /** Turns TLS on with this certificate and its key. */
  readonly useTls: (certificate: string, key: string) => Effect.Effect<void>
}

export const ownServer = Effect.gen(function* () {
  const dataDir = yield* temporaryDirectory
  chmodSync(dataDir, 0o755)
  const hba = path.join(dataDir, "test_hba.conf")
  writeFileSync(hba, access)
  chmodSync(hba, 0o644)
  const address = ownAddress()
  const settings = { hba_file: hba, listen_addresses: address, fsync: "off", synchronous_commit: "off" }
  const { host: socket } = Context.get(yield* Layer.build(Embedded.layer({ dataDir, settings })), Embedded)
  const run = (...statements: ReadonlyArray<string>) =>
    Effect.acquireUseRelease(
      Effect.promise(() => new Pg.Client({ host: socket, user: "postgres", database: "postgres" }).connect()),
      (client) =>
        Effect.promise(async () => {
          for (const statement of statements) await client.query(statement)
        }),
      (client) => Effect.promise(() => client.end())
    )
  const useTls = Effect.fnUntraced(function* (certificate: string, key: string) {
    const home = path.join(dataDir, "postgres")
    const { gid, uid } = lstatSync(home)
    const [ownCertificate, ownKey] = [path.join(home, "server.crt"), path.join(home, "server.key")]
    copyFileSync(certificate, ownCertificate)
    copyFileSync(key, ownKey)
    for (const file of [ownCertificate, ownKey]) {
      chownSync(file, uid, gid)
      chmodSync(file, 0o600)
    }
    yield* run(
      `ALTER SYSTEM SET ssl_cert_file = '${ownCertificate}'`,
      `ALTER SYSTEM SET ssl_key_file = '${ownKey}'`,
      "ALTER SYSTEM SET ssl = on",
      "SELECT pg_reload_conf()"
    )
  })
  const server: OwnServer = {
    socket,
    address,
    run,
    useTls,
    url: (role, password, database = role) =>
      `postgres://${role}:${encodeURIComponent(password)}@localhost/${database}?host=${encodeURIComponent(socket)}`
  }
  return server
})
