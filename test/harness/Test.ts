import * as Effects from "@effect/vitest"
import { Context, Effect, identity, Layer } from "effect"
import { it as plain, type TestContext, type TestOptions } from "vitest"

export { afterAll, assert, describe } from "@effect/vitest"

/** What a test does: a generator, as `Effect.gen` takes it, or a function that returns an effect. */
export type Body<R, Args extends ReadonlyArray<unknown>> = (
  ...args: Args
) => Effect.Effect<unknown, unknown, R> | Effect.fn.Return<unknown, unknown, R>

export const perform = <R, Args extends ReadonlyArray<unknown>>(body: Body<R, Args>, ...args: Args) =>
  Effect.suspend(() => {
    const begun = body(...args)
    return Effect.isEffect(begun) ? begun : Effect.gen(() => begun)
  })

type Performed<R> = Effect.Effect<unknown, unknown, R>
type Options = number | TestOptions
type Tests<R, Args extends Array<unknown>> = (
  name: string,
  self: (...args: Args) => Performed<R>,
  options?: Options
) => void

/** The test function of a kind and those beside it, where tests ask for `R` and `provide` leaves the kind's own. */
const kindOf = <Own, R>(tester: Effects.Vitest.Tester<Own>, provide: (test: Performed<R>) => Performed<Own>) => {
  const testOf =
    <Args extends Array<unknown>>(test: Tests<Own, Args>) =>
    (name: string, body: Body<R, Args>, options?: Options) =>
      test(name, (...args) => provide(perform(body, ...args)), options)
  return Object.assign(testOf<[TestContext]>(tester), {
    each: <T>(cases: ReadonlyArray<T>) => testOf<Array<T>>(tester.each(cases)),
    skipIf: (condition: unknown) => testOf<[TestContext]>(tester.skipIf(condition)),
    runIf: (condition: unknown) => testOf<[TestContext]>(tester.runIf(condition)),
    prop: tester.prop
  })
}

/** A kind whose tests may also be given a layer each. */
const ownKindOf = <R>(tester: Effects.Vitest.Tester<R>) =>
  Object.assign(kindOf<R, R>(tester, identity), {
    with: <Given, E>(layer: Layer.Layer<Given, E, R>) =>
      kindOf<R, R | Given>(tester, (test) =>
        Effect.scopedWith((scope) =>
          Effect.flatMap(Layer.buildWithScope(layer, scope), (given) =>
            Effect.mapInputContext(test, (own: Context.Context<R>) => Context.merge(own, given))
          )
        )
      )
  })

/** A vitest's `it` of its own, since `@effect/vitest` changes the one of all files. */
export const it = Object.assign(plain.extend({}), {
  effect: ownKindOf(Effects.effect),
  scoped: ownKindOf(Effects.scoped),
  live: ownKindOf(Effects.live),
  scopedLive: ownKindOf(Effects.scopedLive),
  prop: Effects.prop
})

const within = <R, Excluded extends boolean>(of: Effects.Vitest.MethodsNonLive<R, Excluded>) =>
  Object.assign(plain.extend({}), { effect: ownKindOf(of.effect), scoped: ownKindOf(of.scoped) })

/** Tests that share what a layer makes. */
export const layer =
  <R, E, const Excluded extends boolean = false>(
    made: Layer.Layer<R, E>,
    options?: Parameters<typeof Effects.layer<R, E, Excluded>>[1]
  ) =>
  (name: string, tests: (it: ReturnType<typeof within<R, Excluded>>) => void): void =>
    Effects.layer(made, options)(name, (of) => tests(within(of)))
