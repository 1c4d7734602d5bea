/** How often a key may be used: chosen when it is made, changed later. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { type Key, keys, type RateLimit, setRateLimit } from "../../api/Keys.ts"
import { Button } from "../../components/Button.tsx"
import { Actions, Dialog } from "../../components/Dialog.tsx"
import { TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Keys.module.css"

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

/** As it is typed. */
export interface TypedLimit {
  readonly requests: string
  readonly window: string
}

export const noLimit: TypedLimit = { requests: "", window: "60" }

/** Null where no number of requests is typed. */
export const limitOf = ({ requests, window }: TypedLimit): RateLimit | null =>
  requests === "" ? null : { requests: Number(requests), window: Number(window) }

interface FieldsProps {
  readonly value: TypedLimit
  readonly onChange: (value: TypedLimit) => void
}

export const LimitFields = ({ value, onChange }: FieldsProps) => {
  const t = useText(words)
  return (
    <>
      <TextField
        label={t.requests}
        help={t.requestsHelp}
        inputMode="numeric"
        pattern="[0-9]+"
        value={value.requests}
        onChange={(requests) => onChange({ ...value, requests })}
      />
      <TextField
        label={t.window}
        inputMode="numeric"
        pattern="[0-9]+"
        isRequired={value.requests !== ""}
        value={value.window}
        onChange={(window) => onChange({ ...value, window })}
      />
    </>
  )
}

/** Of the list's column. */
export const useLimitTitle = () => useText(words).title

export const Limit = ({ rateLimit }: Pick<Key, "rateLimit">) => {
  const t = useText(words)
  const { number } = useFormat()
  return (
    <span className={css["soft"]}>
      {rateLimit === null ? t.ofServer : t.short(number(rateLimit.requests), number(rateLimit.window))}
    </span>
  )
}

interface EditProps {
  readonly agentId: string
  readonly found: Key
  readonly onClose: () => void
}

const Edit = ({ agentId, found: { id, rateLimit }, onClose }: EditProps) => {
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [typed, setTyped] = useState(
    rateLimit === null ? noLimit : { requests: String(rateLimit.requests), window: String(rateLimit.window) }
  )
  const save = useMutation({
    mutationFn: () => setRateLimit(id, limitOf(typed)),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: keys(agentId).queryKey })
      onClose()
    }
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form onSubmit={submit} style={{ display: "contents" }}>
      {save.error === null ? null : <Problem problem={save.error} />}
      <LimitFields value={typed} onChange={setTyped} />
      <Actions>
        <Button onPress={onClose}>{common.cancel}</Button>
        <Button kind="primary" type="submit" busy={save.isPending}>
          {common.save}
        </Button>
      </Actions>
    </form>
  )
}

export const EditLimit = ({ agentId, found }: Omit<EditProps, "onClose">) => {
  const t = useText(words)
  const [open, setOpen] = useState(false)
  const close = () => setOpen(false)
  return (
    <>
      <Button kind="quiet" aria-label={`${t.title}: ${found.name}`} onPress={() => setOpen(true)}>
        {t.title}
      </Button>
      <Dialog title={`${t.title}: ${found.name}`} isOpen={open} onClose={close}>
        <Edit agentId={agentId} found={found} onClose={close} />
      </Dialog>
    </>
  )
}
