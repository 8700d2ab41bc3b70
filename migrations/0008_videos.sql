-- Renders. A job belongs to the database: whoever holds its lease works on it, and anybody may once that has lapsed.

CREATE TABLE videos (
  id            text PRIMARY KEY,
  org_id        text NOT NULL REFERENCES organizations (id),
  key_id        text NOT NULL REFERENCES api_keys (id),
  hold_id       uuid NOT NULL UNIQUE REFERENCES holds (id),
  request_id    text NOT NULL,
  model         text NOT NULL,
  seconds       integer NOT NULL,
  price         bigint NOT NULL CHECK (price >= 0),
  -- Emptied once the job is over.
  prompt        text NOT NULL,
  -- The reference image: where the customer says it is, and the private copy of it in the media store.
  reference_url text,
  reference     text,
  created_at    timestamptz NOT NULL DEFAULT now(),
  deadline      timestamptz NOT NULL,
  -- When the customer was told of the job, or would have been; one that fails before that is nobody's.
  accepted_at   timestamptz,

  status        text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'in_progress', 'completed', 'failed')),
  completed_at  timestamptz,
  -- The clip's name in the media store.
  media         text,
  sandbox       boolean NOT NULL DEFAULT false,
  error_code    text,
  error_message text,
  -- What the provider charges, where the operator has said.
  cost          bigint,

  -- submit: to be submitted; submitting: on its way to `route`, and nobody knows whether it arrived until the step
  -- moves on; rendering: `route` has it under `handle`.
  step          text NOT NULL DEFAULT 'submit' CHECK (step IN ('submit', 'submitting', 'rendering', 'over')),
  -- The route as it was when it was asked, as JSON without its credential.
  route         text,
  handle        text,
  -- Ids of the routes that were asked.
  tried         text[] NOT NULL DEFAULT '{}',
  attempts      jsonb NOT NULL DEFAULT '[]',
  -- Whether one more route may be asked after a doubtful submit or a failed render.
  spare         boolean NOT NULL DEFAULT true,
  -- Submits that may have reached a provider without anybody knowing: each may have been paid for nothing.
  doubts        integer NOT NULL DEFAULT 0,
  polls         integer NOT NULL DEFAULT 0,
  downloads     integer NOT NULL DEFAULT 0,
  -- Whether the provider is still to be told to give the render up.
  cancelling    boolean NOT NULL DEFAULT false,

  -- When there is something to do next; null: never again.
  next_at       timestamptz DEFAULT now(),
  lease         uuid,
  lease_until   timestamptz,

  CHECK ((status IN ('completed', 'failed')) = (completed_at IS NOT NULL)),
  CHECK ((status IN ('completed', 'failed')) = (step = 'over')),
  CHECK ((status = 'completed') = (media IS NOT NULL)),
  CHECK ((status = 'failed') = (error_code IS NOT NULL)),
  CHECK ((lease IS NULL) = (lease_until IS NULL)),
  CHECK (step NOT IN ('submitting', 'rendering') OR route IS NOT NULL),
  CHECK (step <> 'rendering' OR handle IS NOT NULL)
);
CREATE INDEX videos_org ON videos (org_id, created_at DESC, id DESC) WHERE accepted_at IS NOT NULL;
CREATE INDEX videos_due ON videos (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX videos_references ON videos (id) WHERE step = 'over' AND reference IS NOT NULL;
CREATE INDEX videos_over ON videos (completed_at) WHERE completed_at IS NOT NULL;

-- What is over stays as it is; only what is still to be said to the provider may change.
CREATE FUNCTION keep_finished_videos() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.status, NEW.media, NEW.error_code, NEW.completed_at, NEW.price, NEW.hold_id)
    IS DISTINCT FROM (OLD.status, OLD.media, OLD.error_code, OLD.completed_at, OLD.price, OLD.hold_id) THEN
    RAISE EXCEPTION 'a finished video cannot change';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER videos_finished_once BEFORE UPDATE ON videos
  FOR EACH ROW WHEN (OLD.status IN ('completed', 'failed')) EXECUTE FUNCTION keep_finished_videos();
