/** A new token for a channel's account, in place of one that has expired or was revoked. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { type Channel, channels, replaceToken } from "../../../api/Channels.ts"
import { TextField } from "../../../components/Field.tsx"
import { DialogActions } from "../../../forms/DialogActions.tsx"
import { Form } from "../../../forms/Form.tsx"
import { useSaveAndClose } from "../../../forms/useSaveAndClose.ts"
import { useIssues } from "../../../forms/useIssues.ts"
import { texts, useText } from "../../../text/Language.tsx"

const words = texts(
  {
    token: "Access token",
    password: "Password",
    newToken: "New token",
    newPassword: "New password",
    help: "The provider is asked before it is stored. It is encrypted and never shown again."
  },
  {
    token: "Zugriffstoken",
    password: "Passwort",
    newToken: "Neuer Token",
    newPassword: "Neues Passwort",
    help: "Der Anbieter wird gefragt, bevor er gespeichert wird. Er wird verschlüsselt und nie wieder gezeigt."
  }
)

interface Props {
  readonly agentId: string
  readonly channel: Channel
}

export const TokenForm = ({ agentId, channel, onClose }: Props & { readonly onClose: () => void }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [token, setToken] = useState("")
  const replace = useSaveAndClose({
    save: () => replaceToken(channel, token),
    refresh: async () => {
      await queries.invalidateQueries({ queryKey: channels(agentId).queryKey })
      await queries.invalidateQueries({ queryKey: ["agent-problems"] })
    },
    onClose
  })
  const { errorOf, general } = useIssues(replace.error, ["accessToken"])
  return (
    <Form onSubmit={() => replace.mutate()} problem={general}>
      <TextField
        label={channel.channel === "email" ? t.password : t.token}
        help={t.help}
        type="password"
        autoComplete="off"
        required
        autoFocus
        value={token}
        onChange={setToken}
        error={errorOf("accessToken")}
      />
      <DialogActions busy={replace.isPending} onClose={onClose} />
    </Form>
  )
}

/** Title of the form, and label of the action that opens it. */
export const useTokenTitle = () => {
  const t = useText(words)
  return ({ channel }: Channel) => (channel === "email" ? t.newPassword : t.newToken)
}
