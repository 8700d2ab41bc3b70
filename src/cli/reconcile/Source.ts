import { Effect, Redacted } from "effect"
import { type CsvColumns, type CsvField, csvBooks, csvFields } from "../../books/CsvBooks.ts"
import { vendorOf, vendors } from "../../books/Vendors.ts"
import type { ProviderAccount } from "../../domain/Model.ts"
import { CommandFailed } from "../CommandFailed.ts"

const fail = (message: string) => new CommandFailed({ message, exitCode: 2 })

const isField = (text: string): text is CsvField => csvFields.some((field) => field === text)

export const columnForms = `pairs such as time=created,model=name,usd=cost of ${csvFields.join(", ")}`

/** Undefined where they are none, or one that must be there is missing. */
export const parseColumns = (text: string): CsvColumns | undefined => {
  const columns = new Map<CsvField, string>()
  for (const pair of text.split(",")) {
    const [field = "", column = "", ...more] = pair.split("=").map((part) => part.trim())
    if (!isField(field) || column === "" || more.length > 0 || columns.has(field)) return undefined
    columns.set(field, column)
  }
  return columns.has("time") && columns.has("model") && columns.has("usd") ? columns : undefined
}

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"])

/** The key goes there: nowhere in the clear but to this machine. */
export const parseBaseUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const { hostname, href, password, protocol, username } = new URL(text)
  if (username !== "" || password !== "") return undefined
  return protocol === "https:" || (protocol === "http:" && loopback.has(hostname)) ? href : undefined
}

export interface Given {
  readonly file: string | undefined
  readonly columns: CsvColumns | undefined
  readonly baseUrl: string | undefined
}

/** The books of the account's vendor, or those of the file. */
export const openBooks = Effect.fnUntraced(function* (account: ProviderAccount, { baseUrl, columns, file }: Given) {
  if ((file === undefined) !== (columns === undefined)) return yield* fail("--file and --columns go together.")
  if (file !== undefined && columns !== undefined) {
    if (baseUrl !== undefined) return yield* fail("--base-url does not go with --file.")
    return yield* csvBooks(file, columns)
  }
  const vendor = vendorOf(account)
  if (vendor === undefined) {
    const known = vendors.flatMap(({ hosts }) => hosts).join(", ")
    return yield* fail(
      `The books of ${account.name} are not known: its base_url is at none of ${known}. Export them: see --file.`
    )
  }
  const key = process.env[vendor.variable]?.trim() ?? ""
  if (key === "") return yield* fail(`${vendor.variable} is not set: ${vendor.name} shows its books to an admin key.`)
  return vendor.open({ baseUrl: baseUrl ?? vendor.baseUrl, key: Redacted.make(key), variable: vendor.variable })
})
