import type { Key as KeySchema } from "../../../services/access/Key.ts"
import type { Organization as OrganizationSchema } from "../../../services/admin/Organizations.ts"
import type { ListedEntry as ListedEntrySchema } from "../../../services/ledger/Entry.ts"

export type Organization = typeof OrganizationSchema.Encoded
export type Key = typeof KeySchema.Encoded
export type ListedEntry = typeof ListedEntrySchema.Encoded

interface WithWarnings {
  readonly warnings?: ReadonlyArray<string>
}

export type ChangedKey = Key & WithWarnings
export type ChangedOrganization = Organization & WithWarnings

/** The secret is null if the request was repeated. */
export type IssuedKey = Key & WithWarnings & { readonly key: string | null }
