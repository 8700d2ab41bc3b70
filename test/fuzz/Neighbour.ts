import { performance } from "node:perf_hooks"

export interface Health {
  readonly answers: number
  /** In milliseconds, and the requests of others that were under way meanwhile. */
  readonly worst: { readonly millis: number; readonly beside: ReadonlyArray<number> }
  readonly failures: ReadonlyArray<string>
}

/** A customer that asks for a small chat every 50 ms, whatever others do, until it is told to stop. */
export const start = (url: string, secret: string, underWay: () => Iterable<number>) => {
  const stopping = new AbortController()
  const failures: Array<string> = []
  let answers = 0
  let worst: Health["worst"] = { millis: 0, beside: [] }

  const ask = async () => {
    const startedAt = performance.now()
    const before = [...underWay()]
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m1", messages: [{ role: "user", content: "hi" }] }),
      signal: AbortSignal.timeout(60_000)
    })
    const text = await response.text()
    const millis = performance.now() - startedAt
    if (millis > worst.millis) worst = { millis, beside: [...new Set([...before, ...underWay()])] }
    answers += 1
    if (response.status !== 200) failures.push(`${response.status} ${text.slice(0, 200)}`)
  }
  const living = (async () => {
    while (!stopping.signal.aborted) {
      await ask().catch((error: unknown) => failures.push(String(error)))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()

  return {
    stop: async (): Promise<Health> => {
      stopping.abort()
      await living
      return { answers, worst, failures }
    }
  }
}
