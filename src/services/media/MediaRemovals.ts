import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { MediaStore } from "./MediaStore.ts"

const batch = 1_000

/** Removes what transactions have listed in `media_removals`; a failed removal stays listed. */
export const makeMediaRemovals = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const store = yield* MediaStore

  const remove = (name: string) =>
    Effect.zipRight(
      store.remove(name),
      Effect.uninterruptible(sql`DELETE FROM media_removals WHERE name = ${name}`)
    ).pipe(Effect.ignoreLogged)

  const removeAll = Effect.uninterruptible(
    sql<{ readonly name: string }>`SELECT name FROM media_removals ORDER BY listed_at LIMIT ${batch}`
  ).pipe(Effect.flatMap(Effect.forEach(({ name }) => remove(name), { discard: true })))

  return { remove, removeAll }
})
