/** Databases of tests: `freshUrl` for a migrated one of one's own, `layer` for `SqlClient` over it. */

import { randomUUID } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import * as Pg from "pg"
import { inject } from "vitest"
import { Database, type Options } from "../../../src/database/Database.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** URL of a server where databases may be made; its database is not to be used. */
    databaseServer: string
    /** A database with every migration applied, to be copied. */
    databaseTemplate: string
  }
}

const administer = async (statement: string) => {
  const client = new Pg.Client(inject("databaseServer"))
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

const create = async (options = "") => {
  const name = `test_${randomUUID().replaceAll("-", "")}`
  await administer(`CREATE DATABASE ${name} ${options}`)
  const url = new URL(inject("databaseServer"))
  url.pathname = `/${name}`
  return url.href
}

/** Ends every connection to the database and removes it. */
const drop = (url: string): Promise<void> =>
  administer(`DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)} WITH (FORCE)`)

const scopedUrl = (options?: () => string) =>
  Effect.acquireRelease(
    Effect.promise(() => create(options?.())),
    (url) => Effect.promise(() => drop(url))
  )

/** A migrated database of one's own, as a `DATABASE_URL`; it goes with the scope. */
export const freshUrl = scopedUrl(() => `TEMPLATE ${inject("databaseTemplate")} STRATEGY file_copy`)

/** As `freshUrl`, with no schema at all. */
export const emptyUrl = scopedUrl()

/** Like `emptyUrl`, in an encoding other than UTF8. */
export const emptyUrlIn = (encoding: string) => scopedUrl(() => `ENCODING '${encoding}' TEMPLATE template0`)

/** `SqlClient`, `PgClient` and `Database` over a migrated database of their own, removed with the layer. */
export const layerWith = (options: Options) =>
  Layer.unwrapScoped(Effect.map(freshUrl, (url) => Layer.orDie(Database.layerUrl(Redacted.make(url), options))))

export const layer = layerWith({})
