import { Effect } from "effect"
import type { Message } from "../../../src/domain/Chat.ts"
import { dataUrl, png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, describe } from "../../harness/It.ts"
import { complete, test, tool } from "./Sandbox.ts"

const text = { type: "string" }
const object = (properties: Readonly<Record<string, unknown>>, required: ReadonlyArray<string> = []) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false
})

const codex = [
  tool("exec_command", object({ cmd: text, workdir: text, tty: { type: "boolean" } }, ["cmd"])),
  tool("apply_patch", object({ input: text }, ["input"])),
  tool("multi_agent_v1__spawn_agent", object({ message: text, model: text })),
  tool("multi_agent_v1__wait_agent", object({ targets: { type: "array", items: text } }, ["targets"]))
]
const claude = [
  tool(
    "Agent",
    object({ description: text, prompt: text, run_in_background: { type: "boolean" } }, ["description", "prompt"])
  ),
  tool("Bash", object({ command: text, timeout: { type: "number" } }, ["command"])),
  tool(
    "Edit",
    object({ file_path: text, old_string: text, new_string: text }, ["file_path", "old_string", "new_string"])
  ),
  tool("Read", object({ file_path: text, offset: { type: "integer" } }, ["file_path"])),
  tool("Write", object({ file_path: text, content: text }, ["file_path", "content"]))
]

const chatRequest = (content: string): Message => ({ role: "user", content: [{ type: "text", text: content }] })
const called = (id: string, content: string): ReadonlyArray<Message> => [
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name: "Bash", arguments: "{}" } }]
  },
  { role: "tool", tool_call_id: id, content }
]

const calls = (tools: typeof codex, ...messages: ReadonlyArray<Message>) =>
  Effect.map(complete({ tools, messages }), ({ toolCalls }) =>
    toolCalls.map(({ function: { arguments: input, name } }): unknown => [name, JSON.parse(input)])
  )

describe("an agent's tools", () => {
  const cases = [
    ["run `echo hi` for me", "exec_command", { cmd: "echo hi" }, "Bash", { command: "echo hi" }],
    [
      "read the file src/notes.txt.",
      "exec_command",
      { cmd: "cat 'src/notes.txt'" },
      "Read",
      { file_path: "src/notes.txt" }
    ],
    [
      "Apply a patch that adds hello.txt with `Hi!`",
      "apply_patch",
      { input: "*** Begin Patch\n*** Add File: hello.txt\n+Hi!\n*** End Patch\n" },
      "Write",
      { file_path: "hello.txt", content: "Hi!" }
    ],
    [
      "replace `one` with `two` in notes.txt",
      "apply_patch",
      { input: "*** Begin Patch\n*** Update File: notes.txt\n@@\n-one\n+two\n*** End Patch\n" },
      "Edit",
      { file_path: "notes.txt", old_string: "one", new_string: "two" }
    ],
    [
      "Ask a sub-agent to read the file notes.txt",
      "multi_agent_v1__spawn_agent",
      { message: "read the file notes.txt" },
      "Agent",
      { description: "agent", prompt: "read the file notes.txt", run_in_background: false }
    ]
  ] as const
  for (const [prompt, codexName, codexInput, claudeName, claudeInput] of cases) {
    test(`are called as asked: ${prompt}`, function* () {
      assert.deepStrictEqual(yield* calls(codex, chatRequest(prompt)), [[codexName, codexInput]])
      assert.deepStrictEqual(yield* calls(claude, chatRequest(prompt)), [[claudeName, claudeInput]])
    })
  }

  test("are left alone by a prompt that asks for none of them, whatever the agent adds", function* () {
    const reminder = chatRequest("<system-reminder>read the file a.txt</system-reminder>")
    const system: Message = { role: "system", content: "run `reboot`" }
    assert.deepStrictEqual(yield* calls(claude, reminder, chatRequest("Bash is a shell."), system), [])
    const { content } = yield* complete({ tools: claude, messages: [reminder, chatRequest("say pong"), system] })
    assert.include(content, 'You wrote "say pong".')
  })

  test("are called one after the other, and the last result is quoted", function* () {
    const prompt = chatRequest("read the file a.txt, then run `ls`")
    const first = called("c1", "alpha")
    assert.deepStrictEqual(yield* calls(claude, prompt, ...first), [["Bash", { command: "ls" }]])
    const reminder = chatRequest("<system-reminder>go on</system-reminder>")
    const messages = [prompt, ...first, ...called("c2", "a.txt"), reminder]
    const { content, finish } = yield* complete({ tools: claude, messages })
    assert.strictEqual(finish, "stop")
    assert.include(content, '"a.txt"')
  })

  test("wait for a sub-agent that answers later", function* () {
    const prompt = chatRequest("ask a sub-agent to run `ls`")
    const started = called("c1", '{"agent_id":"a-1","nickname":"Ada"}')
    assert.deepStrictEqual(yield* calls(codex, prompt, ...started), [
      ["multi_agent_v1__wait_agent", { targets: ["a-1"] }]
    ])
  })

  test("take a command as a list, and files by the shell where there is nothing else", function* () {
    const shell = [tool("shell", object({ command: { type: "array", items: text } }, ["command"]))]
    const run = (command: string) => [["shell", { command: ["bash", "-lc", command] }]]
    assert.deepStrictEqual(
      yield* calls(shell, chatRequest("write a.txt with `it's`")),
      run("printf '%s\\n' 'it'\\''s' > 'a.txt'")
    )
    assert.deepStrictEqual(yield* calls(shell, chatRequest("replace `a` with `b` in a.txt")), [])
  })
})

describe("a picture", () => {
  test("is described by its type and size", function* () {
    const url = dataUrl(png, "image/png")
    const messages: ReadonlyArray<Message> = [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }]
    const { content } = yield* complete({ messages })
    assert.match(content ?? "", /The conversation contains 1 image. The last one is image\/png, \d+ × \d+, \d+ bytes\./)
  })
})
