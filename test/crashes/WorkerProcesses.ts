import http from "node:http"
import { Effect } from "effect"
import { ConnectionBroke } from "../harness/client/ChatClient.ts"
import { eventually } from "../harness/database/Money.ts"
import type { GatewayProcess } from "../harness/gateway/GatewayProcess.ts"

export interface Fetched {
  readonly status: number
  readonly text: string
}

/** Sends a request over a connection of its own, which goes to the worker whose turn it is. */
export const fetchAnew = (
  url: string,
  request: { readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown } = {}
) =>
  Effect.async<Fetched, ConnectionBroke>((resume) => {
    const fail = (cause: unknown) => resume(Effect.fail(new ConnectionBroke({ cause })))
    const { body, headers = {} } = request
    const sent = http.request(
      url,
      { agent: false, headers, method: body === undefined ? "GET" : "POST" },
      (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
        response.on("error", fail)
        response.on("end", () =>
          response.complete
            ? resume(Effect.succeed({ status: response.statusCode ?? 0, text }))
            : fail("the answer is not complete")
        )
      }
    )
    sent.on("error", fail)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    return Effect.sync(() => sent.destroy())
  })

/** Process ids of the workers that have served so far, in their order. */
export const pidsOf = ({ stderr }: GatewayProcess): ReadonlyArray<number> =>
  [...stderr().matchAll(/Worker \d+ \(pid (\d+)\) serves/g)].map(([, pid]) => Number(pid))

/** Waits until so many workers have served in all. */
export const served = (gateway: GatewayProcess, count: number) =>
  eventually(
    Effect.sync(() => pidsOf(gateway)),
    (pids) => pids.length >= count
  )

/** The value of a series in `/metrics`, 0 where there is none. */
export const sampleOf = (exposition: string, series: string): number => {
  const line = exposition.split("\n").find((one) => one.startsWith(`${series} `))
  return Number(line?.split(" ").at(-1) ?? 0)
}
