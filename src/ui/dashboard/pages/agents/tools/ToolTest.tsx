/** Form to test a tool: the arguments that a model would send, and the answer of the tool. */
import { useMutation, useQuery } from "@tanstack/react-query"
import { useState } from "react"
import type { JsonObject, JsonValue } from "../../../../../domain/Text.ts"
import { type Tool, tryTool } from "../../../api/Tools.ts"
import { Badge } from "../../../components/Badge.tsx"
import { Button } from "../../../components/Button.tsx"
import { Switch } from "../../../components/Checkboxes.tsx"
import { Actions } from "../../../components/Dialog.tsx"
import { Select, TextArea, TextField } from "../../../components/Field.tsx"
import { Loaded } from "../../../components/Page.tsx"
import { Form } from "../../../forms/Form.tsx"
import { parseJsonObject } from "../../../forms/json.ts"
import { useFormat } from "../../../text/Format.ts"
import { texts, useText } from "../../../text/Language.tsx"
import { parseNumber } from "../../../text/parseNumber.ts"
import { type Argument, argumentsOf, choicesOf, isObject } from "./parameters.ts"
import css from "./ToolTest.module.css"

const words = texts(
  {
    lead: "The address is really asked: what the tool does happens.",
    function: "Function",
    none: "The server offers no function.",
    arguments: "Arguments",
    argumentsHelp: "JSON, as a model would send it.",
    unset: "Not sent",
    context: (pointer: string) => `Variable ${pointer}`,
    contextHelp: "As the request’s toolContext would bring it.",
    credential: (slot: string) => `Credential “${slot}”`,
    credentialHelp: "As the request would bring it. It is not kept.",
    run: "Test",
    answered: (milliseconds: string) => `Answered in ${milliseconds} ms`,
    failed: (milliseconds: string) => `Failed after ${milliseconds} ms`,
    answer: "Answer",
    cut: "Only its beginning is shown.",
    bad: "This is no JSON object."
  },
  {
    lead: "Die Adresse wird wirklich aufgerufen: Was das Werkzeug tut, geschieht.",
    function: "Funktion",
    none: "Der Server bietet keine Funktion an.",
    arguments: "Argumente",
    argumentsHelp: "JSON, so wie ein Modell es senden würde.",
    unset: "Nicht senden",
    context: (pointer: string) => `Variable ${pointer}`,
    contextHelp: "So, wie die Anfrage sie in toolContext mitbringen würde.",
    credential: (slot: string) => `Zugang „${slot}“`,
    credentialHelp: "So, wie die Anfrage ihn mitbringen würde. Er wird nicht aufbewahrt.",
    run: "Testen",
    answered: (milliseconds: string) => `Beantwortet in ${milliseconds} ms`,
    failed: (milliseconds: string) => `Fehlgeschlagen nach ${milliseconds} ms`,
    answer: "Antwort",
    cut: "Nur der Anfang ist zu sehen.",
    bad: "Das ist kein JSON-Objekt."
  }
)

type FieldValues = Readonly<Record<string, string>>

/** The value of what was typed; undefined if nothing is sent. */
const valueOf = ({ isRequired, type }: Argument, typed: string): JsonValue | undefined => {
  if (type === "boolean") return typed === "" && !isRequired ? undefined : typed === "true"
  if (typed === "") return isRequired && type === "string" ? "" : undefined
  return type === "number" || type === "integer" ? parseNumber(typed) : typed
}

/** `object`, with `value` at the JSON pointer `pointer`. */
const setAtPointer = (object: JsonObject, pointer: string, value: string): JsonObject => {
  const [, name = "", rest = ""] = /^\/([^/]*)(.*)$/su.exec(pointer) ?? []
  const key = name.replaceAll("~1", "/").replaceAll("~0", "~")
  if (rest === "") return { ...object, [key]: value }
  const inner = object[key]
  return { ...object, [key]: setAtPointer(isObject(inner) ? inner : {}, rest, value) }
}

interface FieldProps {
  readonly argument: Argument
  readonly value: string
  readonly onChange: (value: string) => void
}

const ArgumentField = ({ argument, onChange, value }: FieldProps) => {
  const t = useText(words)
  const { description, isRequired, name, type } = argument
  const help = description === "" ? undefined : description
  if (type === "boolean" && isRequired) {
    return <Switch label={name} isSelected={value === "true"} onChange={(on) => onChange(String(on))} />
  }
  if (type === "choice" || type === "boolean") {
    const values = type === "boolean" ? ["true", "false"] : choicesOf(argument)
    const choices = values.map((one) => [one, one] as const)
    return (
      <Select
        label={name}
        help={help}
        options={isRequired ? choices : [["", t.unset], ...choices]}
        value={isRequired && value === "" ? (choices[0]?.[0] ?? "") : value}
        onChange={onChange}
      />
    )
  }
  return (
    <TextField
      label={name}
      help={help}
      required={isRequired}
      {...(type === "string" ? {} : { inputMode: "decimal", pattern: "-?[0-9]+([.,][0-9]+)?" })}
      value={value}
      onChange={onChange}
    />
  )
}

interface CallFormProps {
  readonly tool: Tool
  readonly functions: Awaited<ReturnType<typeof tryTool>>["functions"]
}

const CallForm = ({ functions, tool }: CallFormProps) => {
  const t = useText(words)
  const { number } = useFormat()
  const [chosen, setChosen] = useState(functions[0]?.name ?? "")
  const [typed, setTyped] = useState<FieldValues>({})
  const [argumentsJson, setArgumentsJson] = useState("{}")
  const [context, setContext] = useState<FieldValues>({})
  const [credential, setCredential] = useState("")
  const chosenFunction = functions.find(({ name }) => name === chosen)
  const rows = chosenFunction === undefined ? null : argumentsOf(chosenFunction.parameters)
  const pointers = [...new Set((tool.bindings ?? []).map(({ from }) => from))]
  const { slot } = tool.auth
  const argumentsToSend = (): JsonObject | null => {
    if (rows === null) return parseJsonObject(argumentsJson)
    return Object.fromEntries(
      rows.flatMap((row) => {
        const defaultText = row.type === "choice" && row.isRequired ? (choicesOf(row)[0] ?? "") : ""
        const value = valueOf(row, typed[row.name] ?? defaultText)
        return value === undefined ? [] : [[row.name, value] as const]
      })
    )
  }
  const run = useMutation({
    mutationFn: (input: JsonObject) =>
      tryTool(tool.id, {
        function: chosen,
        arguments: input,
        ...(pointers.length === 0
          ? {}
          : {
              toolContext: pointers
                .filter((pointer) => (context[pointer] ?? "") !== "")
                .reduce<JsonObject>(
                  (toolContext, pointer) => setAtPointer(toolContext, pointer, context[pointer] ?? ""),
                  {}
                )
            }),
        ...(slot === undefined || credential === "" ? {} : { toolCredentials: { [slot]: credential } })
      })
  })
  const outcome = run.data?.outcome ?? null
  const milliseconds = number(run.data?.milliseconds ?? 0)
  return (
    <Form
      onSubmit={() => {
        const input = argumentsToSend()
        if (input !== null) run.mutate(input)
      }}
      problem={run.error}
    >
      {functions.length > 1 ? (
        <Select
          label={t.function}
          options={functions.map(({ name }) => [name, name] as const)}
          value={chosen}
          onChange={(name) => {
            setChosen(name)
            setTyped({})
          }}
        />
      ) : null}
      {rows === null ? (
        <TextArea
          label={t.arguments}
          help={t.argumentsHelp}
          mono
          value={argumentsJson}
          onChange={setArgumentsJson}
          error={parseJsonObject(argumentsJson) === null ? t.bad : undefined}
        />
      ) : (
        rows.map((row) => (
          <ArgumentField
            key={row.name}
            argument={row}
            value={typed[row.name] ?? ""}
            onChange={(value) => setTyped({ ...typed, [row.name]: value })}
          />
        ))
      )}
      {pointers.map((pointer) => (
        <TextField
          key={pointer}
          label={t.context(pointer)}
          help={t.contextHelp}
          value={context[pointer] ?? ""}
          onChange={(value) => setContext({ ...context, [pointer]: value })}
        />
      ))}
      {slot === undefined ? null : (
        <TextField
          label={t.credential(slot)}
          help={t.credentialHelp}
          type="password"
          autoComplete="off"
          value={credential}
          onChange={setCredential}
        />
      )}
      <div role="status" className={css["outcome"]}>
        {outcome === null ? null : outcome._tag === "answer" ? (
          <>
            <Badge tone="good">{t.answered(milliseconds)}</Badge>
            <pre tabIndex={0} aria-label={t.answer} lang="">
              {outcome.text}
            </pre>
            {outcome.isCut ? <span>{t.cut}</span> : null}
          </>
        ) : (
          <>
            <Badge tone="bad">{t.failed(milliseconds)}</Badge>
            <span lang="en">{outcome.message}</span>
          </>
        )}
      </div>
      <Actions>
        <Button kind="primary" type="submit" busy={run.isPending}>
          {t.run}
        </Button>
      </Actions>
    </Form>
  )
}

/** The label of the action that opens the test. */
export const useTestTitle = () => useText(words).run

export const ToolTest = ({ tool }: { readonly tool: Tool }) => {
  const t = useText(words)
  // An MCP server is asked for its functions each time, because they may have changed.
  const query = useQuery({
    queryKey: ["tools", tool.id, tool.version, "functions"],
    queryFn: () => tryTool(tool.id, {}),
    staleTime: 0,
    gcTime: 0,
    // Not while somebody types: a failure would remove the form.
    refetchOnWindowFocus: false,
    refetchOnReconnect: false
  })
  return (
    <>
      <p className={css["soft"]}>{t.lead}</p>
      <Loaded query={query}>
        {({ functions, outcome }) =>
          outcome !== null && outcome._tag === "failure" ? (
            <p role="alert" lang="en" className={css["failure"]}>
              {outcome.message}
            </p>
          ) : functions.length === 0 ? (
            <p>{t.none}</p>
          ) : (
            <CallForm tool={tool} functions={functions} />
          )
        }
      </Loaded>
    </>
  )
}
