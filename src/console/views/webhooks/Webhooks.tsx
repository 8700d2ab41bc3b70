import { usePages } from "../../api/usePages.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { Deliveries } from "./Deliveries.tsx"
import type { DeliveryRecord, EndpointRecord } from "./Endpoints.tsx"
import { Endpoints } from "./Endpoints.tsx"

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "id or name", isInternal: true },
  { kind: "select", name: "state", label: "Deliveries", options: ["pending", "delivered", "failed"] },
  { kind: "text", name: "endpoint", label: "Endpoint", placeholder: "whe_…" }
]

/** Endpoints, and the deliveries to them. */
export const Webhooks = () => {
  const { endpoint, organization, state } = useRoute().query
  const endpoints = usePages<EndpointRecord>("/webhooks", { organization }, 20)
  const deliveries = usePages<DeliveryRecord>("/webhooks/deliveries", { organization, state, endpoint })
  return (
    <Page title="Webhooks">
      <FilterBar filters={filters} />
      <Endpoints endpoints={endpoints} organization={organization} />
      <Deliveries deliveries={deliveries} />
    </Page>
  )
}
