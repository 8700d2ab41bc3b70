/** Databases of tests. `freshUrl` creates a migrated one, and `layer` provides `SqlClient` for one. */

import { randomUUID } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import * as Pg from "pg"
import { inject } from "vitest"
import { Database, type Options } from "../../../src/database/Database.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of a server on which tests create databases. Tests must not use the database of this URL itself. */
    databaseServer: string
    /** The name of a database with all migrations, which tests copy. */
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

/** Closes all connections to the database and deletes it. */
const drop = (url: string): Promise<void> =>
  administer(`DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)} WITH (FORCE)`)

const scopedUrl = (options?: () => string) =>
  Effect.acquireRelease(
    Effect.promise(() => create(options?.())),
    (url) => Effect.promise(() => drop(url))
  )

/** Creates a migrated database and returns its `DATABASE_URL`. The database is deleted with the scope. */
export const freshUrl = scopedUrl(() => `TEMPLATE ${inject("databaseTemplate")} STRATEGY file_copy`)

/** Like `freshUrl`, but without a schema. */
export const emptyUrl = scopedUrl()

/** Like `emptyUrl`, with an encoding other than UTF8. */
export const emptyUrlIn = (encoding: string) => scopedUrl(() => `ENCODING '${encoding}' TEMPLATE template0`)

/** Provides `SqlClient`, `PgClient` and `Database` over a migrated database, which is deleted with the layer. */
export const layerWith = (options: Options) =>
  Layer.unwrapScoped(Effect.map(freshUrl, (url) => Layer.orDie(Database.layerUrl(Redacted.make(url), options))))

export const layer = layerWith({})
