import { about } from "../Api.ts"

/** What a customer reads first, as Markdown. */
export const introduction = (baseUrl: string, model: string): string =>
  `${about.description} The base URL is \`${baseUrl}\`.

## Authentication

Send your key as \`Authorization: Bearer <API_KEY>\`, or as \`x-api-key: <API_KEY>\`. The examples take it from the environment:

\`\`\`
export GATEWAY_KEY=ggw_…
\`\`\`

## Official clients

The OpenAI clients work with this base URL and your key.

\`\`\`sh
curl ${baseUrl}/models -H "Authorization: Bearer $GATEWAY_KEY"
\`\`\`

\`\`\`python
import os
from openai import OpenAI

client = OpenAI(base_url="${baseUrl}", api_key=os.environ["GATEWAY_KEY"])
completion = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Say hello in one sentence."}],
)
print(completion.choices[0].message.content)
\`\`\`

\`\`\`js
import OpenAI from "openai"

const client = new OpenAI({ baseURL: "${baseUrl}", apiKey: process.env.GATEWAY_KEY })
const completion = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Say hello in one sentence." }]
})
console.log(completion.choices[0].message.content)
\`\`\`

## Conventions

- Bodies are JSON in UTF-8; times are integer Unix seconds; money is in USD.
- \`null\` is the same as leaving a field out. Fields that are not listed are accepted and have no effect.
- Every answer has an \`x-request-id\`: yours if you sent one, and the one to name when you ask about a request.
- Every error is \`{"error": {"message", "type", "param", "code"}}\`. Branch on \`code\`, which is more precise than the status.
- Retry 429, 500, 502, 503 and 504, after \`retry-after\` seconds where that header is there. With an \`Idempotency-Key\`, repeating an image or a video makes and charges nothing twice.
`
