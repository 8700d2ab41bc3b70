import { Resolver } from "node:dns/promises"
import { Effect } from "effect"

export type Names = (host: string) => Effect.Effect<ReadonlyArray<string>, Error>

const firstTryMillis = 1_000
const tries = 2

const special = /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa)$/

export const isPrivate = (host: string): boolean => {
  const name = host.toLowerCase().replace(/\.$/, "")
  return !name.includes(".") || special.test(name)
}

/** Asks DNS directly: the system's look-up uses the few threads that connections to providers share. */
export const make =
  (servers?: ReadonlyArray<string>): Names =>
  (host) =>
    Effect.flatMap(
      Effect.promise((signal) => {
        const resolver = new Resolver({ timeout: firstTryMillis, tries })
        if (servers !== undefined) resolver.setServers(servers)
        signal.addEventListener("abort", () => resolver.cancel())
        return Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
      }),
      (answers) => {
        const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
        return addresses.length > 0 ? Effect.succeed(addresses) : Effect.fail(new Error("the name has no address"))
      }
    )
