"""What flows between the rooms, and what each room promises: the narrow waist."""

from sixjars.flow.inputs import Batch as Batch
from sixjars.flow.inputs import Padded as Padded
from sixjars.flow.inputs import Parts as Parts
from sixjars.flow.promises import Bridge as Bridge
from sixjars.flow.promises import Chooser as Chooser
from sixjars.flow.promises import Decoder as Decoder
from sixjars.flow.promises import Encoder as Encoder
from sixjars.flow.promises import Part as Part
from sixjars.flow.promises import Step as Step
from sixjars.flow.promises import Writer as Writer
from sixjars.flow.rows import Rows as Rows
from sixjars.flow.rows import Tensors as Tensors
from sixjars.flow.values import Above as Above
from sixjars.flow.values import Carried as Carried
from sixjars.flow.values import Context as Context
from sixjars.flow.values import Encoded as Encoded
from sixjars.flow.values import FirstShape as FirstShape
from sixjars.flow.values import Hypothesis as Hypothesis
from sixjars.flow.values import Layout as Layout
from sixjars.flow.values import Marks as Marks
from sixjars.flow.values import Scored as Scored
from sixjars.flow.values import State as State
from sixjars.flow.values import Taught as Taught
