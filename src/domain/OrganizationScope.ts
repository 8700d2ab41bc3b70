import type { OrgId } from "./Organization.ts"

/**
 * Whose data a query of the administration may read or change: everyone's, or one organization's. What the actor of a
 * request may reach comes from its authentication; commands and workers take `all`.
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

  /** Undefined: everyone's. */
  get org(): OrgId | undefined {
    return this.#org
  }

  /** The organization that a query is about, within the scope. */
  narrow(org: OrgId | undefined): OrgId | undefined {
    return this.#org ?? org
  }
}
