import type { Key as KeySchema } from "../../../services/access/Key.ts"
import type { ListedEntryRecord, OpenHoldRecord } from "../../../services/admin/EntryRecord.ts"
import type { OrganizationRecord } from "../../../services/admin/OrganizationChanges.ts"

export type Organization = typeof OrganizationRecord.Encoded
export type Key = typeof KeySchema.Encoded
export type ListedEntry = typeof ListedEntryRecord.Encoded
export type Hold = typeof OpenHoldRecord.Encoded

/** Null is the secret of a repeated request. */
export type IssuedKey = Key & { readonly key: string | null }
