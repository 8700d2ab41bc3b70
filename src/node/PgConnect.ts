/**
 * Fails what connects for as long as `failure` returns an error: neither a pool nor a client of pg can be told to
 * refuse new connections, and another attempt would take until its timeout. A proxy keeps the overloads. Needed by pg
 * 8.23.
 */
export const failConnecting = <F extends (callback: never) => void>(connect: F, failure: () => Error | undefined): F =>
  new Proxy(connect, {
    apply: (target, self, args) => {
      const error = failure()
      if (error === undefined) return Reflect.apply(target, self, args)
      const [callback]: ReadonlyArray<unknown> = args
      return typeof callback === "function" ? process.nextTick(callback, error) : Promise.reject(error)
    }
  })
