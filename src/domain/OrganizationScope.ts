import type { OrgId } from "./Organization.ts"

/**
 * The data that an admin query may read or change: that of all organizations, or of one. Authentication decides the scope of
 * a request; commands and workers use `all`.
 */
export class OrganizationScope {
  static readonly all = new OrganizationScope(undefined)

  readonly #org: OrgId | undefined

  private constructor(org: OrgId | undefined) {
    this.#org = org
  }

  static only(org: OrgId) {
    return new OrganizationScope(org)
  }

  /** Undefined: all organizations. */
  get org(): OrgId | undefined {
    return this.#org
  }

  /** Returns the organization to query: the scope's, or the requested one if the scope has all. */
  narrow(org: OrgId | undefined): OrgId | undefined {
    return this.#org ?? org
  }
}
