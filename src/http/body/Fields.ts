import { InvalidRequest } from "../../domain/Failure.ts"

/** A plain union: wrapping each field costs more than reading it. */
export type Read<A> = A | InvalidRequest

export const refused = (read: unknown): read is InvalidRequest => read instanceof InvalidRequest

export const refuse = (param: string | null, message: string): InvalidRequest => new InvalidRequest({ message, param })

export const refuseAt = (param: string, path: string, problem: string): InvalidRequest =>
  refuse(param, `\`${path}\` ${problem}.`)

export const each = <A>(
  items: ReadonlyArray<unknown>,
  readItem: (item: unknown, index: number) => Read<A>
): Read<ReadonlyArray<A>> => {
  const values: Array<A> = []
  for (let index = 0; index < items.length; index++) {
    const value = readItem(items[index], index)
    if (refused(value)) return value
    values.push(value)
  }
  return values
}
