import { Empty } from "../../parts/Empty.tsx"
import { Page } from "../../parts/Page.tsx"

export const Now = () => (
  <Page title="Now">
    <Empty>Nothing has happened yet.</Empty>
  </Page>
)
