import { chatAdapterContract } from "../contracts/ChatAdapter.ts"
import { harnesses } from "./OpenAiChatHosts.ts"

for (const harness of harnesses) chatAdapterContract(harness)
