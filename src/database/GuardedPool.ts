import * as Pg from "pg"
import { failConnecting } from "../node/PgConnect.ts"
import { DatabaseLost } from "../services/sql/Outage.ts"
import { PooledClient } from "./PooledClient.ts"
import * as Session from "./Session.ts"

/** Milliseconds that locks outlive a suspended or disconnected process. */
const longestIdleInTransaction = 2_000

/** The server gives up on a statement before we do, so that what we report as failed is not carried out later. */
export class GuardedPool extends Pg.Pool {
  readonly #open: ReadonlySet<PooledClient>
  readonly #idle = new Set<Pg.ClientBase>()
  #lost: DatabaseLost | undefined
  #answers = 0

  /**
   * `isServing`: statements recur, and planning one takes longer than running it. A plan made for a table of one page would
   * still read it whole when it has grown to thousands, until the next ANALYZE.
   */
  constructor(config: Pg.PoolConfig, limitMillis: number, isServing: boolean) {
    const open = new Set<PooledClient>()
    super({
      ...config,
      Client: class extends PooledClient {
        constructor(options?: Pg.ClientConfig) {
          super(limitMillis, options, () => retire())
          if (lost() === undefined) open.add(this)
          this.on("end", () => open.delete(this))
          this.connection.on("readyForQuery", countAnswer)
          this.connect = failConnecting(super.connect.bind(this), lost)
        }
      },
      onConnect: (client) =>
        Session.configure(client, {
          statement_timeout: String(Math.ceil(limitMillis * 0.9)),
          idle_in_transaction_session_timeout: String(longestIdleInTransaction),
          jit: "off",
          enable_seqscan: isServing ? "off" : "on",
          plan_cache_mode: isServing ? "force_generic_plan" : "auto"
        })
    })
    const lost = () => this.#lost
    const retire = () => this.retire()
    const countAnswer = () => {
      this.#answers += 1
    }
    this.#open = open
    this.on("error", () => {})
    this.on("acquire", (client) => this.#idle.delete(client))
    this.on("remove", (client) => this.#idle.delete(client))
    this.on("release", (_, client) => {
      if (client instanceof PooledClient && !client.isReusable) client.end(() => {})
      else this.#idle.add(client)
    })
    this.connect = failConnecting(super.connect.bind(this), lost)
  }

  get answers() {
    return this.#answers
  }

  retire() {
    for (const client of this.#open) {
      client.retire()
      if (this.#idle.has(client)) client.connection.stream.destroy(new Error("The connection is made anew"))
    }
  }

  cut(error: Error) {
    for (const client of this.#open) client.connection.stream.destroy(error)
  }

  lose(reason: string) {
    this.#lost = new DatabaseLost(reason)
    this.cut(this.#lost)
  }

  regain() {
    this.#lost = undefined
  }
}
