"""Fields: one file for each kind of value; this table is the whole registry."""

from sixjars.data.field import Field
from sixjars.data.fields.features import FeaturesField
from sixjars.data.fields.image import ImageField
from sixjars.data.fields.label import LabelField
from sixjars.data.fields.order import OrderField
from sixjars.data.fields.points import PointsField
from sixjars.data.fields.text import TextField
from sixjars.data.fields.video import VideoField

FIELDS: dict[str, type[Field]] = {
    "text": TextField,
    "label": LabelField,
    "order": OrderField,
    "points": PointsField,
    "image": ImageField,
    "video": VideoField,
    "features": FeaturesField,
}
