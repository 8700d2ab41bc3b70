import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { Effect } from "effect"
import { ProviderFailure } from "../../../services/routing/Provider.ts"
import { type Font, parse } from "./Font.ts"

type Sharp = typeof import("sharp").default

export interface Tools {
  readonly sharp: Sharp
  readonly font: Font
}

/** Where pictures are made: off the event loop, few at a time. */
export interface Studio {
  /** Waits for a turn. The work runs to its end, but who asked for it can leave. */
  readonly draw: <A>(work: (tools: Tools) => Effect.Effect<A, ProviderFailure>) => Effect.Effect<A, ProviderFailure>
}

/** Of the four threads that the process has for files, names and pictures. */
const atOnce = 2

const failed = (what: string) => (cause: unknown) =>
  new ProviderFailure({
    class: "retry",
    status: 500,
    detail: `sandbox: ${what}: ${cause instanceof Error ? cause.message : String(cause)}`.slice(0, 500)
  })

/** A promise of the drawing library's. */
export const drawn = <A>(work: () => Promise<A>): Effect.Effect<A, ProviderFailure> =>
  Effect.tryPromise({ try: work, catch: failed("a picture could not be drawn") })

// Asked for by the first picture, so that a machine where the library cannot be loaded serves all else.
const load = Effect.tryPromise({
  try: async (): Promise<Tools> => {
    const { default: sharp } = await import("sharp")
    sharp.concurrency(1)
    sharp.cache(false)
    const file = createRequire(import.meta.url).resolve("dejavu-fonts-ttf/ttf/DejaVuSans.ttf")
    return { sharp, font: parse(await readFile(file)) }
  },
  catch: failed("pictures need the packages sharp and dejavu-fonts-ttf, and they could not be loaded")
})

export const make: Effect.Effect<Studio> = Effect.map(Effect.makeSemaphore(atOnce), (turns) => {
  let tools: Tools | undefined
  const loaded = Effect.suspend(() =>
    tools === undefined ? Effect.tap(load, (all) => (tools = all)) : Effect.succeed(tools)
  )
  return {
    draw: (work) =>
      Effect.disconnect(turns.withPermits(1)(Effect.uninterruptible(Effect.flatMap(loaded, (all) => work(all)))))
  }
})
