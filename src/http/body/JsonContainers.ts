import { setSource } from "../../domain/JsonSource.ts"
import { isIndexName, orderOf } from "../../domain/JsonText.ts"

/** `number` is the text of a number that JavaScript writes in another way. */
export interface Container {
  readonly value: object
  /** The byte of the bracket that closes it. */
  readonly end: number
  readonly put: (value: unknown, number: string | undefined) => void
  readonly close: () => void
}

export class ArrayContainer implements Container {
  readonly value: Array<unknown> = []
  readonly end = 0x5d
  numbers: Map<number, string> | undefined

  put(value: unknown, number: string | undefined): void {
    if (number !== undefined) (this.numbers ??= new Map()).set(this.value.length, number)
    this.value.push(value)
  }

  close(): void {
    if (this.numbers !== undefined) setSource(this.value, { numbers: this.numbers, names: undefined })
  }
}

export class ObjectContainer implements Container {
  readonly value: Record<string, unknown> = {}
  readonly end = 0x7d
  members = 0
  name = ""
  numbers: Map<string, string> | undefined
  /** In order, from the first one that JavaScript moves. */
  names: Array<string> | undefined

  put(value: unknown, number: string | undefined): void {
    if (this.names === undefined && isIndexName(this.name)) this.names = Object.keys(this.value)
    this.names?.push(this.name)
    if (number !== undefined) (this.numbers ??= new Map()).set(this.name, number)
    if (this.name !== "__proto__") this.value[this.name] = value
    else Object.defineProperty(this.value, this.name, { value, enumerable: true, configurable: true, writable: true })
  }

  close(): void {
    const names = this.names && orderOf(this.value, this.names)
    if (names !== undefined || this.numbers !== undefined) setSource(this.value, { numbers: this.numbers, names })
  }
}
