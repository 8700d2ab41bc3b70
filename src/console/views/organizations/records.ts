import type { Key as KeySchema } from "../../../services/access/Key.ts"
import type { Organization as OrganizationSchema } from "../../../services/admin/Organization.ts"
import type { ListedEntry as ListedEntrySchema } from "../../../services/ledger/Entry.ts"

export type Organization = typeof OrganizationSchema.Encoded
export type Key = typeof KeySchema.Encoded
export type ListedEntry = typeof ListedEntrySchema.Encoded

interface Warned {
  readonly warnings?: ReadonlyArray<string>
}

export type ChangedKey = Key & Warned
export type ChangedOrganization = Organization & Warned

/** Null is the secret of a repeated request. */
export type IssuedKey = Key & Warned & { readonly key: string | null }
