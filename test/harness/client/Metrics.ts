/** `scrape` reads `/metrics`, and `sumOf` adds up the samples of a series. */

import { Effect } from "effect"
import { call, callAt } from "./HttpCalls.ts"

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const sample = /^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)$/
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** Parses a text in Prometheus' format. */
export const parseSamples = (text: string): ReadonlyArray<Sample> =>
  text.split("\n").flatMap((line) => {
    const [, name, labels = "", value] = sample.exec(line) ?? []
    if (name === undefined) return []
    return [
      {
        name,
        labels: Object.fromEntries(Array.from(labels.matchAll(label), ([, key = "", text = ""]) => [key, text])),
        value: Number(value)
      }
    ]
  })

/** Reads the gateway's current metrics. */
export const scrape = Effect.map(call("/metrics"), ({ text }) => parseSamples(text))

export const scrapeAt = (url: string) => Effect.map(callAt(`${url}/metrics`), ({ text }) => parseSamples(text))

/** Returns the samples of a series with at least these labels. */
export const samplesOf = (samples: ReadonlyArray<Sample>, name: string, labels: Sample["labels"] = {}) =>
  samples.filter(
    (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value)
  )

/** Returns the sum of the samples, or 0 if there are none. */
export const sumOf = (samples: ReadonlyArray<Sample>, name: string, labels: Sample["labels"] = {}): number =>
  samplesOf(samples, name, labels).reduce((sum, { value }) => sum + value, 0)
