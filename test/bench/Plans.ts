import { Statement } from "@effect/sql"
import { Array as Arr, Effect, Order, Schema } from "effect"
import type * as Pg from "pg"

/** The tables that keep a row of every request for months. */
const growing: ReadonlySet<string> = new Set([
  "api_keys",
  "audit",
  "holds",
  "idempotency_keys",
  "ledger_entries",
  "request_log",
  "videos",
  "webhook_deliveries"
])

/** Whether the planner knows the values: a command's does, a serving connection's does not. */
export type Planning = "force_custom_plan" | "force_generic_plan"

export interface Recorded {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
}

/** Collects the statements of what runs under its layer, each text once. */
export const makeRecorder = () => {
  let recorded = new Map<string, Recorded>()
  return {
    layer: Statement.setTransformer((statement) =>
      Effect.sync(() => {
        const [text, values] = statement.compile()
        if (!recorded.has(text)) recorded.set(text, { text, values })
        return statement
      })
    ),
    /** Those of the effect. */
    during: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        recorded = new Map()
        return Effect.map(effect, () => [...recorded.values()])
      })
  }
}

const fields = {
  "Node Type": Schema.String,
  "Relation Name": Schema.optional(Schema.String),
  "Index Name": Schema.optional(Schema.String),
  "Actual Rows": Schema.Number,
  "Actual Loops": Schema.Number,
  "Rows Removed by Filter": Schema.optional(Schema.Number),
  "Rows Removed by Index Recheck": Schema.optional(Schema.Number)
}
interface Node extends Schema.Struct.Type<typeof fields> {
  readonly Plans?: ReadonlyArray<Node> | undefined
}
const Node: Schema.Schema<Node> = Schema.Struct({
  ...fields,
  Plans: Schema.optional(Schema.Array(Schema.suspend(() => Node)))
})

const Explained = Schema.Tuple(
  Schema.Struct({
    "QUERY PLAN": Schema.Tuple(
      Schema.Struct({
        Plan: Schema.extend(
          Schema.Struct({ "Shared Hit Blocks": Schema.Number, "Shared Read Blocks": Schema.Number }),
          Node
        ),
        "Planning Time": Schema.Number,
        "Execution Time": Schema.Number
      })
    )
  })
)
const decodeExplained = Schema.decodeUnknownSync(Explained)

const nodesOf = (node: Node): ReadonlyArray<Node> => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

/** What one run of a statement took the server. */
export interface Work {
  readonly millis: number
  /** Of its tables and indexes, however often each. */
  readonly blocks: number
  /** Rows of growing tables that were looked at, whether or not they were wanted. */
  readonly rowsRead: number
  /** How growing tables were read, each way once. */
  readonly scans: ReadonlyArray<string>
}

const scanOf = (node: Node) => {
  const { "Index Name": index, "Node Type": type, "Relation Name": relation } = node
  return node["Actual Loops"] === 0 || type === "ModifyTable" || relation === undefined || !growing.has(relation)
    ? []
    : [`${type.replace(" Scan", "")} ${index ?? relation}`]
}

const readBy = (node: Node) =>
  scanOf(node).length === 0
    ? 0
    : (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0)) *
      node["Actual Loops"]

const decodeTexts = Schema.decodeUnknownSync(
  Schema.Tuple(Schema.Struct({ texts: Schema.Array(Schema.NullOr(Schema.String)) }))
)

/** As the driver sends them. */
const literalsOf = async (client: Pg.Client, values: ReadonlyArray<unknown>) => {
  const { rows } = await client.query(
    `SELECT ARRAY[${values.map((_, index) => `$${index + 1}::text`).join(", ")}]::text[] AS texts`,
    [...values]
  )
  const [{ texts }] = decodeTexts(rows)
  return texts.map((text) => (text === null ? "NULL" : client.escapeLiteral(text)))
}

/** Runs the statement and undoes what it did. */
const explain = (client: Pg.Client, { text, values }: Recorded, planning: Planning) =>
  Effect.promise(async (): Promise<Work> => {
    const literals = await literalsOf(client, values)
    const call = literals.length === 0 ? "explained" : `explained(${literals.join(", ")})`
    await client.query(`BEGIN; SET LOCAL plan_cache_mode = ${planning}; PREPARE explained AS ${text}`)
    try {
      const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE ${call}`)
      const [
        {
          "QUERY PLAN": [explained]
        }
      ] = decodeExplained(rows)
      const { "Execution Time": execution, Plan: plan, "Planning Time": planning } = explained
      const nodes = nodesOf(plan)
      return {
        millis: planning + execution,
        blocks: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        rowsRead: Math.round(nodes.reduce((sum, node) => sum + readBy(node), 0)),
        scans: Arr.dedupe(nodes.flatMap(scanOf))
      }
    } finally {
      await client.query("ROLLBACK; DEALLOCATE explained")
    }
  })

const byMillis = Order.mapInput(Order.number, ({ millis }: Work) => millis)

export const median = <A>(values: Arr.NonEmptyReadonlyArray<A>, order: Order.Order<A>): A =>
  Arr.sort(values, order)[Math.floor(values.length / 2)] ?? values[0]

/** Adds up the medians of so many runs of each statement, after one to warm up where there are several. */
export const measure = Effect.fnUntraced(function* (
  client: Pg.Client,
  statements: ReadonlyArray<Recorded>,
  planning: Planning,
  times: number
) {
  const works: Array<Work> = []
  for (const statement of statements) {
    if (times > 1) yield* explain(client, statement, planning)
    works.push(median(yield* Effect.all(Arr.makeBy(times, () => explain(client, statement, planning))), byMillis))
  }
  return {
    millis: works.reduce((sum, { millis }) => sum + millis, 0),
    blocks: works.reduce((sum, { blocks }) => sum + blocks, 0),
    rowsRead: works.reduce((sum, { rowsRead }) => sum + rowsRead, 0),
    scans: Arr.dedupe(works.flatMap(({ scans }) => scans))
  } satisfies Work
})
