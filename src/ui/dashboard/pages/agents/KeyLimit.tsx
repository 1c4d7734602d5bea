/** The rate limit of a key, set at creation and changed later. */
import { useQueryClient } from "@tanstack/react-query"
import { type Key, keys, type RateLimit, setRateLimit } from "../../api/Keys.ts"
import { TextField } from "../../components/Field.tsx"
import { ConflictingValue } from "../../forms/DraftNotes.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useSaveAndClose } from "../../forms/useSaveAndClose.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    title: "Limit",
    requests: "Requests at most",
    requestsHelp: "Empty: what the server allows every key.",
    window: "In how many seconds",
    short: (requests: string, seconds: string) => `${requests} in ${seconds} s`,
    ofServer: "Default"
  },
  {
    title: "Grenze",
    requests: "Anfragen höchstens",
    requestsHelp: "Leer: was der Server jedem Schlüssel erlaubt.",
    window: "In wie vielen Sekunden",
    short: (requests: string, seconds: string) => `${requests} in ${seconds} s`,
    ofServer: "Vorgabe"
  }
)

/** The values of the fields, as typed. */
export interface LimitFieldValues {
  readonly requests: string
  readonly window: string
}

export const noLimit = { requests: "", window: "60" }

/** Null if no number of requests is entered. */
export const limitOf = ({ requests, window }: LimitFieldValues): RateLimit | null =>
  requests === "" ? null : { requests: Number(requests), window: Number(window) }

/** Paths of validation issues of a limit. */
export const limitPaths = ["rateLimit.requests", "rateLimit.window"] as const

interface FieldsProps {
  readonly value: LimitFieldValues
  readonly onChange: (value: Partial<LimitFieldValues>) => void
  readonly errorOf: (path: (typeof limitPaths)[number]) => string | undefined
}

export const LimitFields = ({ errorOf, value, onChange }: FieldsProps) => {
  const t = useText(words)
  return (
    <>
      <TextField
        label={t.requests}
        help={t.requestsHelp}
        guide="authentication#rate-limits"
        inputMode="numeric"
        pattern="[0-9]+"
        value={value.requests}
        onChange={(requests) => onChange({ requests })}
        error={errorOf("rateLimit.requests")}
      />
      <TextField
        label={t.window}
        inputMode="numeric"
        pattern="[0-9]+"
        required={value.requests !== ""}
        value={value.window}
        onChange={(window) => onChange({ window })}
        error={errorOf("rateLimit.window")}
      />
    </>
  )
}

/** Title of the list's column and of the form. */
export const useLimitTitle = () => useText(words).title

export const Limit = ({ rateLimit }: Pick<Key, "rateLimit">) => {
  const t = useText(words)
  const { number } = useFormat()
  return (
    <span>
      {rateLimit === null ? t.ofServer : t.short(number(rateLimit.requests), number(rateLimit.window))}
    </span>
  )
}

interface EditProps {
  readonly agentId: string
  readonly apiKey: Key
  readonly onClose: () => void
}

export const EditLimit = ({ agentId, apiKey, onClose }: EditProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const { rateLimit } = apiKey
  const draft = useDraft({
    name: `limit.${apiKey.id}`,
    title: `${t.title}: ${apiKey.name}`,
    stored:
      rateLimit === null
        ? noLimit
        : { requests: String(rateLimit.requests), window: String(rateLimit.window) }
  })
  const save = useSaveAndClose({
    save: () => setRateLimit(apiKey, limitOf(draft.value)),
    refresh: () => queries.invalidateQueries({ queryKey: keys(agentId).queryKey }),
    onClose,
    draft
  })
  const { errorOf, general } = useIssues(save.error, limitPaths)
  return (
    <Form onSubmit={() => save.mutate()} problem={general} draft={draft}>
      <LimitFields value={draft.value} onChange={draft.change} errorOf={errorOf} />
      <ConflictingValue draft={draft} name="requests" />
      <ConflictingValue draft={draft} name="window" />
      <DialogActions draft={draft} busy={save.isPending} onClose={onClose} />
    </Form>
  )
}
