/**
 * The `it` of @effect/vitest, whose tests may also be generators as in `Effect.gen`. `withLayer` is its `layer` with
 * the real clock. `liveOver` and `testOver` build the layer again for each test. Do not import `it` or `layer` of
 * @effect/vitest: its `layer` changes the `it` that all test files of a process share.
 */

import { effect, layer as layerOf, live, prop, scoped, scopedLive, test, type Vitest } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { TestAPI, TestContext, TestFunction, TestOptions } from "vitest"

export { afterAll, assert, describe } from "@effect/vitest"

type Run<R> = Effect.Effect<unknown, unknown, R>

/** A test: an effect, or a generator as in `Effect.gen`. */
export type Body<Args extends Array<unknown>, R> = (
  ...args: Args
) => Run<R> | Generator<YieldWrap<Run<R>>, unknown, never>

type Test<Args extends Array<unknown>, R> = (name: string, body: Body<Args, R>, options?: number | TestOptions) => void

export const effectOf =
  <Args extends Array<unknown>, R>(body: Body<Args, R>) =>
  (...args: Args): Run<R> => {
    const run = body(...args)
    return Effect.isEffect(run) ? run : Effect.gen(() => run)
  }

const withBodies =
  <R>(test: Vitest.Test<R>): Test<[TestContext], R> =>
  (name, body, options) =>
    test(name, effectOf(body), options)

const testerOf = <R>(tester: Vitest.Tester<R>) =>
  Object.assign(withBodies(tester), {
    runIf: (condition: boolean) => withBodies(tester.runIf(condition)),
    skipIf: (condition: boolean) => withBodies(tester.skipIf(condition)),
    each:
      <T>(cases: ReadonlyArray<T>): Test<[T], R> =>
      (name, body, options) =>
        tester.each(cases)(name, effectOf(body), options),
    prop: tester.prop
  })

interface Plain extends Pick<TestAPI, "each" | "skipIf"> {
  (name: string, body: TestFunction, options?: number | TestOptions): void
}

/** Copies `it`, so no other test file can change this one. */
const itWith = <Testers extends object>(testers: Testers): Plain & Testers => Object.assign(test.extend({}), testers)

export const it = itWith({
  effect: testerOf(effect),
  scoped: testerOf(scoped),
  live: testerOf(live),
  scopedLive: testerOf(scopedLive),
  prop
})

const provideEach =
  <Clock>(tester: Vitest.Tester<Clock>) =>
  <R, E>(layer: Layer.Layer<R, E>): Test<[TestContext], R | Clock> =>
  (name, body, options) =>
    tester(name, (context) => Effect.provide(effectOf(body)(context), layer), options)

/** Tests with the real clock. Each test gets a layer of its own. */
export const liveOver = provideEach(scopedLive)

/** Tests with the test clock. Each test gets a layer of its own. */
export const testOver = provideEach(scoped)

const sharedIt = <R>({ effect, scoped }: Pick<Vitest.MethodsNonLive<R, true>, "effect" | "scoped">) =>
  itWith({ effect: testerOf(effect), scoped: testerOf(scoped) })

/** Tests with the real clock that share a layer. */
export const withLayer =
  <R, E>(layer: Layer.Layer<R, E>) =>
  (name: string, tests: (it: ReturnType<typeof sharedIt<R>>) => void) =>
    layerOf(layer, { excludeTestServices: true, timeout: "3 minutes" })(name, (it) => tests(sharedIt(it)))
