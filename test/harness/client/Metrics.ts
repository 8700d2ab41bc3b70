/** What `/metrics` says: `scrape`, and the sum of a series. */

import { Effect } from "effect"
import { call, callAt } from "./HttpCalls.ts"

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const sample = /^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)$/
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** The samples of a text in Prometheus' format. */
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

/** What the gateway says now. */
export const scrape = Effect.map(call("/metrics"), ({ text }) => parseSamples(text))

export const scrapeAt = (url: string) => Effect.map(callAt(`${url}/metrics`), ({ text }) => parseSamples(text))

/** Of a series with at least these labels. */
export const samplesOf = (samples: ReadonlyArray<Sample>, name: string, labels: Sample["labels"] = {}) =>
  samples.filter(
    (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value)
  )

/** 0 where there is none yet. */
export const sumOf = (samples: ReadonlyArray<Sample>, name: string, labels: Sample["labels"] = {}): number =>
  samplesOf(samples, name, labels).reduce((sum, { value }) => sum + value, 0)
