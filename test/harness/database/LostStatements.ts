import { SqlError } from "@effect/sql/SqlError"
import { Context, Effect, Layer } from "effect"
import { Prepared } from "../../../src/services/sql/SqlStatement.ts"
import * as Postgres from "./Postgres.ts"

/**
 * A database client that loses the first statement whose text includes `text`, or only its answer. The caller cannot
 * distinguish the two.
 */
export const losing = (lost: "statement" | "answer", text: string) =>
  Layer.map(Postgres.layer, (context) => {
    const failure = new SqlError({ cause: new Error("connection lost"), message: "connection lost" })
    const { run } = Context.get(context, Prepared)
    let isFirst = true
    return Context.add(context, Prepared, {
      run: (query) => {
        if (!isFirst || !query.text.includes(text)) return run(query)
        isFirst = false
        return lost === "answer" ? Effect.zipRight(run(query), failure) : failure
      }
    })
  })
