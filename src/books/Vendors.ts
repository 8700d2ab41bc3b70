import type { ProviderAccount } from "../domain/Model.ts"
import type { Book } from "../services/reconcile/ProviderBooks.ts"
import { anthropic } from "./Anthropic.ts"
import type { Access } from "./BooksClient.ts"
import { fal } from "./Fal.ts"
import { openAi } from "./OpenAi.ts"
import { openRouter } from "./OpenRouter.ts"
import { xai } from "./Xai.ts"

export interface Vendor {
  readonly name: string
  /** Of the API that a provider's `base_url` is at. */
  readonly hosts: ReadonlyArray<string>
  /** Where its key comes from. */
  readonly variable: string
  readonly baseUrl: string
  readonly open: (access: Access) => ReadonlyArray<Book>
}

export const vendors: ReadonlyArray<Vendor> = [
  {
    name: "OpenAI",
    hosts: ["api.openai.com"],
    variable: "OPENAI_ADMIN_KEY",
    baseUrl: "https://api.openai.com/v1",
    open: openAi
  },
  {
    name: "Anthropic",
    hosts: ["api.anthropic.com"],
    variable: "ANTHROPIC_ADMIN_KEY",
    baseUrl: "https://api.anthropic.com",
    open: anthropic
  },
  {
    name: "OpenRouter",
    hosts: ["openrouter.ai"],
    variable: "OPENROUTER_MANAGEMENT_KEY",
    baseUrl: "https://openrouter.ai/api/v1",
    open: openRouter
  },
  {
    name: "fal",
    hosts: ["queue.fal.run", "fal.run"],
    variable: "FAL_ADMIN_KEY",
    baseUrl: "https://api.fal.ai/v1",
    open: fal
  },
  {
    name: "xAI",
    hosts: ["api.x.ai"],
    variable: "XAI_MANAGEMENT_KEY",
    baseUrl: "https://management-api.x.ai",
    open: xai
  }
]

const hostOf = ({ baseUrl = "" }: ProviderAccount): string | undefined =>
  URL.canParse(baseUrl) ? new URL(baseUrl).hostname : undefined

/** The vendor whose API the account calls, by the host of its base URL. */
export const vendorOf = (account: ProviderAccount): Vendor | undefined => {
  const host = hostOf(account)
  return host === undefined ? undefined : vendors.find(({ hosts }) => hosts.includes(host))
}
